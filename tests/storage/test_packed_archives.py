"""Archives that earlier versions packed open unchanged; see `fixtures/packed/README.md`."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from sessions import check_kept, open_graph, tell, thread

from topicloom import Memory, TurnOptions
from topicloom.memory.stored import Graph, get_session
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED
from topicloom.storage import FileStorage, Storage, StoreStorage
from topicloom.storage.sessions import SessionStore
from topicloom.testing import fake_roles

FIXTURES = Path(__file__).parent / "fixtures" / "packed"
CONFIG = thread()
ARCHIVED = ("t1", "t2")


@dataclass
class Packed:
    """A copy of a fixture, opened."""

    folder: Path
    graph: Graph
    place: InMemoryStore | None
    expected: dict[str, Any]

    def reopen(self) -> Storage:
        """Its storage, as another process would open it: nothing remembered."""
        if self.place is None:
            return FileStorage(self.folder / "sessions", fsync=False)
        return StoreStorage(self.place)

    @property
    def store(self) -> SessionStore:
        return SessionStore(self.reopen().open("s"))

    @property
    def session(self) -> Session:
        return get_session(self.graph, CONFIG)

    @property
    def before(self) -> RunnableConfig:
        """The checkpoint from before anything was archived."""
        return {"configurable": self.expected["before"]}

    def written(self) -> str:
        """All that is stored of it, as text, with the paths of files."""
        if self.place is not None:
            return str([item.value for item in self.place.search((), limit=10_000)])
        paths = (p for p in sorted((self.folder / "sessions").rglob("*")) if p.is_file())
        return "".join(f"{p}\n{p.read_bytes().decode('utf-8', 'replace')}" for p in paths)

    def is_plain(self) -> bool:
        """True if nothing of it is packed any more."""
        if self.place is None:
            files = (self.folder / "sessions").rglob("archived/*/*")
            return all(path.suffix == ".jsonl" for path in files)
        items = self.place.search((), limit=10_000)
        return not any(item.namespace[-1].startswith("%archived") for item in items)


@pytest.fixture(params=["files", "store"])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Packed]:
    """Each of the two fixtures."""
    folder = tmp_path / "fixture"
    shutil.copytree(FIXTURES / request.param, folder)
    for path in folder.glob("*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    place = None
    if request.param == "store":
        place = InMemoryStore()
        for item in json.loads((folder / "items.json").read_text()):
            place.put(tuple(item["namespace"]), item["key"], item["value"])
    expected = json.loads((folder / "expected.json").read_text())
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        graph = open_graph(
            folder / "sessions",
            fake_roles(),
            checkpointer=saver,
            storage=None if place is None else StoreStorage(place),
            embedder="hashing",
        )
        yield Packed(folder, graph, place, expected)


def dump(rows: Any) -> list[dict[str, Any]]:
    return [row.model_dump(mode="json", exclude_defaults=True) for row in rows]


def check_as_before(packed: Packed) -> None:
    """Everything is read as it was when the fixture was made, and nothing is reported."""
    store, session = packed.store, packed.session
    table = store.topic_table(session)
    assert dump(store.messages(session)) == packed.expected["transcript"]
    assert dump(table) == packed.expected["topics"]
    held = {t.id: [m.id for m in store.topic_messages(t)] for t in table}
    assert held == packed.expected["messages"]
    assert len(check_kept(store, session)) == session.count == 28
    assert store.log.reports() == []


def test_everything_is_read_as_it_was(packed: Packed) -> None:
    check_as_before(packed)


def test_reading_changes_nothing(packed: Packed) -> None:
    before = packed.written()
    check_as_before(packed)
    assert not packed.is_plain()
    assert packed.written() == before


def test_every_checkpoint_is_read(packed: Packed) -> None:
    states = [state for state in packed.graph.get_state_history(CONFIG) if not state.next]
    counts = [len(check_kept(packed.store, get_session(packed.graph, s.config))) for s in states]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 28
    assert counts[-1] == 12


def test_an_archived_message_is_found_and_quoted(packed: Packed) -> None:
    memory = Memory.of(packed.graph, CONFIG)
    assert "m13" in [hit.message.id for hit in memory.search("“Ünï”")]
    assert memory.quote("m13").text == "雨：“Ünï” 😀 \u2028 end"
    assert memory.quote("m3").text == REMOVED
    assert [m.id for m in memory.topic("t2").messages()] == packed.expected["messages"]["t2"]


def test_a_restored_topic_is_read_as_it_was(packed: Packed) -> None:
    store = packed.store
    for topic in store.topic_table(packed.session):
        store.restore(topic)
    check_as_before(packed)
    assert packed.is_plain()


def test_a_topic_that_is_archived_again_is_read_as_it_was(packed: Packed) -> None:
    store = packed.store
    table = store.topic_table(packed.session)
    for name in ARCHIVED:
        store.archive(table[name], "2026-03")
        assert not store.archive(table[name], "2026-03")
        store.archive(table[name], "2026-04")
    check_as_before(packed)
    assert packed.is_plain()


def test_a_further_turn_adds_to_it(packed: Packed) -> None:
    tell(packed.graph, CONFIG, "山：and tomorrow?", "茶：and the tea?", keep=0)
    messages = check_kept(packed.store, packed.session)
    assert dump(messages)[:28] == packed.expected["transcript"]
    assert [m.text for m in messages[28:]][::2] == ["山：and tomorrow?", "茶：and the tea?"]
    memory = Memory.of(packed.graph, CONFIG)
    memory.restore("t2")
    memory.move("m29-m30", "t2")
    added = [*packed.expected["messages"]["t2"], "m29", "m30"]
    assert [m.id for m in memory.topic("t2").messages()] == added
    assert check_kept(packed.store, packed.session) == messages


def test_a_fork_from_before_the_archiving_sees_its_topics(packed: Packed) -> None:
    moved = packed.store
    for topic in moved.topic_table(packed.session):
        if topic.id in ARCHIVED:
            moved.archive(topic, "2026-05")
    said = {"messages": [HumanMessage("雨：again?")]}
    packed.graph.invoke(said, packed.before, context=TurnOptions(keep_messages=0))
    store, session = packed.store, packed.session
    assert [t.status for t in store.topic_table(session)] == ["open", "open", "open"]
    check_kept(store, session)
    assert store.message(session, 13).text == "雨：“Ünï” 😀 \u2028 end"
    assert store.log.reports() == []


def test_a_purge_of_what_is_archived_leaves_nothing(packed: Packed) -> None:
    memory = Memory.of(packed.graph, CONFIG)
    assert "“Ünï”" in memory.quote("m13").text
    assert memory.forget("m13").left == ()
    assert memory.quote("m13").text == REMOVED
    assert "Ünï" not in packed.written()
    assert packed.is_plain()
    store, session = packed.store, packed.session
    check_kept(store, session)
    texts = [m.text for m in store.topic_messages(store.topic_table(session)["t2"])]
    assert texts.count(REMOVED) == 1
    assert packed.store.log.reports() == []
