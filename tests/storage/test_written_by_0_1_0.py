"""What 0.1.0 wrote opens unchanged, in files and in a store; see `fixtures/v0_1_0/README.md`."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore
from pydantic import BaseModel
from sessions import check_kept, open_graph, tell, thread

from topicloom.memory.stored import get_session
from topicloom.reflection.store import ReflectionStore
from topicloom.state.session import Session
from topicloom.storage import FileStorage, Storage, StoreStorage
from topicloom.storage.references import read_references
from topicloom.storage.sessions import SessionStore
from topicloom.testing import fake_roles

FIXTURES = Path(__file__).parent / "fixtures" / "v0_1_0"


@dataclass
class Written:
    """A copy of a fixture, opened."""

    folder: Path
    storage: Storage
    saver: SqliteSaver
    facts: ReflectionStore
    expected: dict[str, Any]

    @property
    def session(self) -> Session:
        """As the checkpoint has it, before any further turn."""
        return Session.model_validate(self.expected["session"])

    @property
    def store(self) -> SessionStore:
        return SessionStore(self.storage.open("s"))


@pytest.fixture(params=["files", "store"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    """Each of the two fixtures."""
    folder = tmp_path / "fixture"
    shutil.copytree(FIXTURES / request.param, folder)
    for packed in folder.glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    with ExitStack() as opened:
        database = str(folder / "checkpoints.sqlite")
        saver = opened.enter_context(SqliteSaver.from_conn_string(database))
        place = opened.enter_context(SqliteStore.from_conn_string(str(folder / "store.sqlite")))
        files = FileStorage(folder / "sessions", fsync=False)
        yield Written(
            folder=folder,
            storage=files if request.param == "files" else StoreStorage(place),
            saver=saver,
            facts=ReflectionStore(place),
            expected=_read_expected(folder / "expected.json"),
        )


def _read_expected(file: Path) -> dict[str, Any]:
    """What 0.1.0 wrote down, without `related`, which nothing ever read."""
    expected: dict[str, Any] = json.loads(file.read_text("utf-8"))
    for row in expected["topics"]:
        del row["related"]
    return expected


def rows(models: Any) -> list[Any]:
    return [model.model_dump(mode="json") for model in models if isinstance(model, BaseModel)]


def is_kept(written: Any, read: Any) -> bool:
    """True if all that was written is read as it was; fields that came later have defaults."""
    if isinstance(written, dict):
        return all(name in read and is_kept(value, read[name]) for name, value in written.items())
    if isinstance(written, list):
        return len(written) == len(read) and all(map(is_kept, written, read))
    return bool(written == read)


def test_every_message_is_there(written: Written) -> None:
    store, session = written.store, written.session
    assert is_kept(written.expected["transcript"], rows(store.messages(session)))
    assert list(store.transcript_refs(session)) == written.expected["refs"]
    assert len(check_kept(store, session)) == session.count == 36
    for chain, entries in written.expected["entries"].items():
        assert dict(store.log.entries(chain)) == entries
    assert store.log.reports() == []


def test_every_topic_is_there(written: Written) -> None:
    store, expected = written.store, written.expected
    table = store.topic_table(written.session)
    assert is_kept(expected["topics"], rows(table))
    assert [t.status for t in table] == ["archived", "open", "open", "merged"]
    for topic in table:
        assert [r.id for r in store.topic_messages(topic)] == expected["messages"][topic.id]
        assert is_kept(expected["references"][topic.id], rows(read_references(store, topic)))
    assert list(expected["archived"]) == [t.id for t in table if t.status == "archived"]


def test_what_was_made_of_them_is_there(written: Written) -> None:
    store, session, expected = written.store, written.session, written.expected
    assert is_kept(expected["notes"], rows(store.notes(session)))
    assert is_kept(expected["receipts"], rows(store.receipts(session)))
    assert {day: sorted(topics) for day, topics in store.days(session).items()} == expected["days"]
    keys, vectors = store.log.vectors("eight numbers/1").load()
    found = {key: vector.tolist() for key, vector in zip(keys, vectors, strict=True)}
    assert found == expected["vectors"]
    facts = written.facts.facts("s")
    assert {key: fact.value for key, fact in facts.items()} == expected["facts"]
    assert written.storage.sessions() == ["s"]


def test_a_session_of_0_1_0_goes_on(written: Written) -> None:
    graph = open_graph(
        written.folder / "sessions",
        fake_roles(),
        checkpointer=written.saver,
        storage=written.storage,
    )
    assert get_session(graph, thread()) == written.session
    tell(graph, thread(), "雨：and tomorrow?", "山：and there?", keep=0)
    session = get_session(graph, thread())
    messages = check_kept(written.store, session)
    assert is_kept(written.expected["transcript"], rows(messages)[:36])
    assert [r.text for r in messages[36:]][::2] == ["雨：and tomorrow?", "山：and there?"]
    # Nothing that was there is another now, and what was archived can be moved back.
    for topic in written.store.topic_table(session):
        written.store.restore(topic)
    assert check_kept(written.store, session) == messages
    assert written.store.log.reports() == []


def test_the_same_written_again_changes_no_byte(written: Written) -> None:
    """The refs and lines of today are those of 0.1.0: appending them again adds nothing."""
    log, files = written.storage.open("s"), written.folder / "sessions"
    before = {path: path.read_bytes() for path in files.rglob("*.jsonl*")}
    for chain in written.expected["entries"]:
        entries = log.entries(chain)
        for ref, body in log.readable(chain, list(entries)).items():
            if "purged" not in body:
                assert log.append(chain, entries[ref], [body]) == ref
    written.store.archive(written.store.topic_table(written.session)["t1"], "2026-03")
    packed = files / "s/topics/archived/2026-03/topic-t1.jsonl.xz"
    if packed in before:  # an archive is a plain file now, of the same lines
        before[packed.with_suffix("")] = lzma.decompress(before.pop(packed))
    assert {path: path.read_bytes() for path in files.rglob("*.jsonl*")} == before
