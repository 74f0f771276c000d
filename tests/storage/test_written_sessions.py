"""Sessions that earlier versions wrote open unchanged, with every checkpoint, and go on.

See `fixtures/README.md`. What an archive holds is never changed.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from sessions import check_kept
from written_sessions import EXPECTED, IN_STORES, KINDS, PLACES, Place, open_place, read_all

from topicloom import Memory, check_session
from topicloom.memory.stored import Graph, get_session, open_session
from topicloom.nodes.runs import name_thread
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.repair import find_faults

FIXTURES = Path(__file__).parent / "fixtures"
TODAY = [f"{kind}-{place}" for kind in KINDS for place in PLACES[: 1 + (kind in IN_STORES)]]
WRITTEN = [
    *(f"0_1_0/all-{place}" for place in PLACES),
    *(f"5984fb5/{name}" for name in TODAY),
]
"""The versions or commits that wrote the archives, and what is in each."""


@dataclass
class Written:
    """A copy of a written session, and what was read from it when it was written."""

    name: str
    place: Place
    expected: dict[str, Any]
    """By checkpoint."""

    @property
    def config(self) -> RunnableConfig:
        """Names the thread."""
        return name_thread("s", "ann" if "facts" in self.name else "")

    def at(self, checkpoint: str) -> RunnableConfig:
        """Names a checkpoint of the thread."""
        named = {**self.config["configurable"], "checkpoint_id": checkpoint, "checkpoint_ns": ""}
        return {"configurable": named}

    def open(self) -> Graph:
        """The graph or agent that goes on with it."""
        if "agent" in self.name:
            return self.place.open_agent()
        return self.place.open(window=4_000)

    def sessions(self) -> dict[str, Session]:
        """The sessions of the checkpoints, each that differs once."""
        found = {s.model_dump_json(): (id_, s) for id_, s in self.place.checkpoints().items()}
        return dict(found.values())

    def read(self, graph: Graph) -> list[StoredMessage]:
        """All originals of the session as it is now, after checking what must always hold."""
        session, store = open_session(graph, self.config)
        return check_kept(store, session)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that was written."""
    folder = tmp_path_factory.mktemp("written")
    for archive in FIXTURES.glob("sessions_*.tar.xz"):
        with tarfile.open(archive) as packed:
            name = archive.name.removeprefix("sessions_").removesuffix(".tar.xz")
            packed.extractall(folder / name, filter="data")
    return folder


@pytest.fixture(params=WRITTEN)
def written(request: pytest.FixtureRequest, unpacked: Path, tmp_path: Path) -> Iterator[Written]:
    """Each of them, as a copy that can be written to."""
    folder = Path(copytree(unpacked / request.param, tmp_path / "sessions"))
    expected = json.loads((folder / EXPECTED).read_text("utf-8"))
    with open_place(folder, request.param.rpartition("-")[2]) as place:
        yield Written(request.param, place, expected)


def is_kept(written: Any, read: Any) -> bool:
    """True if all that was written is read as it was; fields that came later have defaults."""
    if isinstance(written, dict):
        return all(is_kept(value, read.get(name)) for name, value in written.items())
    if isinstance(written, list) and isinstance(read, list):
        return len(written) == len(read) and all(map(is_kept, written, read))
    return bool(written == read) or (not written and not read)


def test_everything_written_is_tested(unpacked: Path) -> None:
    found = {str(p.relative_to(unpacked)) for p in unpacked.glob("*/*") if p.is_dir()}
    assert found == set(WRITTEN)


def test_every_checkpoint_is_read_as_it_was(written: Written) -> None:
    store, checkpoints = written.place.open_session(), written.place.checkpoints()
    assert list(checkpoints) == sorted(written.expected)
    for id_, session in checkpoints.items():
        read = read_all(store, session)
        expected = written.expected[id_]
        # Packed archives had a card of their own; its topic has the summary too.
        expected.pop("archived", None)
        for part, value in expected.items():
            assert is_kept(value, read[part]), f"{part} at {id_}"


def test_every_checkpoint_is_whole(written: Written) -> None:
    graph, store = written.open(), written.place.open_session()
    for session in written.sessions().values():
        check_kept(store, session)
        assert find_faults(session, store) == []
    assert check_session(graph, written.config) == []
    assert get_session(graph, written.config) == list(written.sessions().values())[-1]


def test_each_message_is_quoted_and_found(written: Written) -> None:
    graph = written.open()
    memory = Memory.of(graph, written.config)
    messages = memory.history(limit=None)
    assert [m.text for m in messages] == [memory.quote(m.id).text for m in messages]
    asked = max((m for m in messages if m.role == "user"), key=lambda m: len(m.text))
    assert asked.id in {f.message.id for f in memory.search(asked.text)}


def test_it_goes_on(written: Written) -> None:
    graph = written.open()
    before = written.read(graph)
    topics = [t.name for t in Memory.of(graph, written.config).topics()]
    if written.name.startswith("5984fb5/concurrent"):
        assert "茶与茶" in topics, "the change that no checkpoint knows of"
    graph.invoke({"messages": [HumanMessage("雨：and tomorrow?", id="new")]}, written.config)
    after = written.read(graph)
    assert after[: len(before)] == before
    assert [m.text for m in after[len(before) :]] == ["雨：and tomorrow?", "All right, noted."]
    assert set(topics) <= {t.name for t in Memory.of(graph, written.config).topics()}
    assert check_session(graph, written.config) == []


def test_an_old_checkpoint_is_forked_and_the_others_stay(written: Written) -> None:
    graph = written.open()
    ends = [(id_, s) for id_, s in written.sessions().items() if s.turn]
    checkpoint, old = ends[len(ends) // 3]
    new = {"messages": [HumanMessage("雨：from there?", id="new")]}
    within = "agent" not in written.name and graph.get_state(written.at(checkpoint)).next
    graph.invoke(None if within else new, written.at(checkpoint))
    store, fork = written.place.open_session(), get_session(graph, written.config)
    said = store.originals(old)
    assert check_kept(store, fork)[: len(said)] == said
    assert fork.branch != old.branch
    for id_, session in written.place.checkpoints().items():
        if id_ in written.expected:
            transcript = [m.model_dump(mode="json") for m in store.originals(session)]
            assert is_kept(written.expected[id_]["transcript"], transcript)
