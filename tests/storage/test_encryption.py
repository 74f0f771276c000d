"""What is encrypted can be read with its key alone, and by it whatever happens to a session."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiosqlite
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from postgres import open_postgres
from sessions import tell, thread

from topicloom import (
    ConfigurationError,
    EncryptedStorage,
    EncryptedStore,
    EncryptionError,
    EncryptionKeys,
    Fact,
    FactChanges,
    FileStorage,
    InputError,
    Memory,
    ReflectionStore,
    Settings,
    StorageError,
    StoreStorage,
    TurnOptions,
    areencrypt,
    build_session_graph,
    local_checkpointer,
    make_encryption_key,
    make_serializer,
    reencrypt,
    review_session,
)
from topicloom.hosting import Graph, open_local_store, open_postgres_store
from topicloom.testing import Clock, fake_roles

KEY, OTHER = make_encryption_key(), make_encryption_key()
KEYS = EncryptionKeys.of(KEY)
WORDS = [
    "the walnut table",
    "蓝色的大门在东边",
    "Berger's invoice no. 4711",
    "Зелёный чай по утрам",
]


@contextmanager
def opened(
    folder: Path, key: str | None = KEY, **options: Any
) -> Iterator[tuple[Graph, BaseStore]]:
    """A session graph over a folder with its checkpoints and facts, all by one key."""
    keys = EncryptionKeys.of(key) if key else None
    settings = Settings(folder=folder, window=2_000, fsync=False, encryption_key=key)
    saver = local_checkpointer(folder, keys=keys)
    with open_local_store(folder, keys=keys) as store:
        builder = build_session_graph(settings=settings, roles=fake_roles(), clock=Clock())
        yield builder.compile(checkpointer=saver, store=store), store
        saver.close()


def live(folder: Path, texts: list[str], key: str | None = KEY) -> bytes:
    """Turns, splits, facts, a review and an archived topic; returns all bytes meanwhile and after.

    While SQLite's files are open, what is new is in those beside them.
    """
    with opened(folder, key) as (graph, store):
        talk(graph, store, texts)
        within = read_bytes(folder)
    return within + read_bytes(folder)


def talk(graph: Graph, store: BaseStore, texts: list[str]) -> None:
    for n, text in enumerate(texts):
        tell(graph, thread(), f"{text} ({n})", keep=0 if n % 2 else None)
    graph.invoke(
        {"messages": [HumanMessage(texts[0])]}, thread(), context=TurnOptions(user_id="ann")
    )
    facts = [Fact(text, ("m1",), "2026-01-01T00:00:00+00:00", quote=text) for text in texts]
    ReflectionStore(store).change_facts("s", FactChanges(tuple(facts)))
    review_session(graph, thread())
    memory = Memory.of(graph, thread())
    for topic in memory.topics():
        memory.archive(topic.id)
    tell(graph, thread(), texts[-1])


def read_bytes(folder: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())


def find(texts: list[str], data: bytes) -> list[str]:
    """Those of some texts of which eight characters stand in some bytes, as text or as JSON."""
    parts = {text: {text[i : i + 8] for i in range(max(1, len(text) - 7))} for text in texts}
    written = {
        text: [p.encode() for p in some] + [p.encode("unicode_escape") for p in some]
        for text, some in parts.items()
    }
    return [text for text, some in written.items() if any(part in data for part in some)]


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.text(st.characters(categories=["L"]), min_size=8, max_size=40),
        min_size=2,
        max_size=5,
        unique=True,
    )
)
def test_no_text_is_in_any_byte(texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        assert not find(texts, live(Path(folder), texts))


@pytest.mark.slow
def test_no_text_is_in_any_byte_and_without_a_key_all_are(tmp_path: Path) -> None:
    assert not find(WORDS, live(tmp_path / "closed", WORDS))
    assert find(WORDS, live(tmp_path / "open", WORDS, None)) == WORDS


@pytest.mark.slow
def test_only_names_kinds_and_times_stay_readable(tmp_path: Path) -> None:
    live(tmp_path, WORDS)
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert not [name for name in names if "topics" in name]
    database = sqlite3.connect(tmp_path / "checkpoints.sqlite")
    columns = "thread_id, checkpoint_ns, checkpoint_id, type, CAST(metadata AS TEXT)"
    shown = database.execute(f"SELECT {columns} FROM checkpoints").fetchall()
    database.close()
    assert {row[3] for row in shown} == {"msgpack+topicloom"}
    assert {row[0] for row in shown} == {"s"}
    for line in (tmp_path / "s" / "transcript.jsonl").read_text("ascii").splitlines():
        assert line.startswith('{"sealed":"')


@pytest.mark.slow
def test_a_wrong_key_and_no_key_are_errors_that_name_the_way_out(tmp_path: Path) -> None:
    live(tmp_path, WORDS)
    for key in (OTHER, None):
        keys = EncryptionKeys.of(key) if key else None
        files = FileStorage(tmp_path)
        with pytest.raises(EncryptionError, match="TOPICLOOM_ENCRYPTION_KEY"):
            (EncryptedStorage(files, keys) if keys else files).open("s").entries("transcript")
        with opened(tmp_path, key) as (graph, store):
            with pytest.raises(EncryptionError, match="TOPICLOOM_ENCRYPTION_KEY"):
                tell(graph, thread(), "Hello?")
            if keys:
                with pytest.raises(EncryptionError, match="TOPICLOOM_ENCRYPTION_KEY"):
                    ReflectionStore(store).facts("s")
    with opened(tmp_path) as (graph, _):
        assert tell(graph, thread(), "Hello?")


@pytest.mark.parametrize("text", ["", "x", "AAAA", pytest.param(f"{KEY},short", id="one of two")])
def test_a_key_that_is_none_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigurationError, match="topicloom key new") as caught:
        EncryptionKeys.of(text)
    assert KEY not in str(caught.value)


def test_a_key_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n{OTHER}\n")
    made = Settings(folder=tmp_path / "s", fsync=False, encryption_key_file=file)
    graph = build_session_graph(settings=made, roles=fake_roles()).compile(
        checkpointer=local_checkpointer(tmp_path / "s", keys=EncryptionKeys.of(file.read_text()))
    )
    tell(graph, thread(), WORDS[0])
    assert not find(WORDS, read_bytes(tmp_path / "s"))
    gone = Settings(encryption_key_file=tmp_path / "gone")
    with pytest.raises(ConfigurationError, match="gone"):
        build_session_graph(settings=gone)


def test_a_graph_with_a_key_refuses_places_that_would_not_encrypt(tmp_path: Path) -> None:
    builder = build_session_graph(settings=Settings(folder=tmp_path, encryption_key=KEY))
    refused = pytest.raises(ConfigurationError, match=r"make_serializer|EncryptedStore")
    with SqliteSaver.from_conn_string(":memory:") as saver, refused:
        builder.compile(checkpointer=saver)
    with open_local_store(tmp_path) as store, refused:
        builder.compile(store=store)


@pytest.mark.parametrize("other", [1, 2])
def test_an_entry_in_the_place_of_another_is_damaged(other: int, tmp_path: Path) -> None:
    storage = EncryptedStorage(FileStorage(tmp_path, fsync=False), KEYS)
    head = storage.open("s").append("transcript", None, [{"text": text} for text in WORDS])
    path = tmp_path / "s" / "transcript.jsonl"
    lines = path.read_text("ascii").splitlines()
    first, second = lines[0].partition(',"prev"'), lines[other].partition(',"prev"')
    lines[0], lines[other] = "".join((second[0], *first[1:])), "".join((first[0], *second[1:]))
    path.write_text("".join(f"{line}\n" for line in lines))
    again = EncryptedStorage(FileStorage(tmp_path), KEYS).open("s")
    with pytest.raises(StorageError, match=r"transcript\.jsonl, line 1"):
        again.read("transcript", again.refs("transcript", head))


def test_equal_sessions_do_not_look_alike(tmp_path: Path) -> None:
    storage = EncryptedStorage(FileStorage(tmp_path, fsync=False), KEYS)
    heads = [storage.open(name).append("transcript", None, [{"text": "x"}]) for name in "ab"]
    assert heads[0] == heads[1]
    lines = {line for path in tmp_path.rglob("transcript.jsonl") for line in [path.read_text()]}
    assert len({line[-20:] for line in lines}) == 2
    assert str(heads[0]) not in "".join(lines)


@pytest.mark.slow
def test_a_new_key_reads_what_the_old_one_wrote_and_then_replaces_it(tmp_path: Path) -> None:
    live(tmp_path, WORDS)
    before = read_session(tmp_path, KEY)
    both = f"{OTHER},{KEY}"
    with opened(tmp_path, both) as (graph, store):
        tell(graph, thread(), "And now with the new key.", keep=0)
        assert len(ReflectionStore(store).facts("s")) == len(WORDS)
    with pytest.raises(EncryptionError):
        read_session(tmp_path, OTHER)
    encrypt(tmp_path, both)
    after = read_session(tmp_path, OTHER)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    with pytest.raises(EncryptionError):
        read_session(tmp_path, KEY)
    with opened(tmp_path, OTHER) as (graph, store):
        assert len(ReflectionStore(store).facts("s")) == len(WORDS)
        assert tell(graph, thread(), "Hello?")


@pytest.mark.slow
def test_what_was_in_the_clear_is_encrypted_once_and_for_all(tmp_path: Path) -> None:
    live(tmp_path, WORDS, None)
    before = read_session(tmp_path, None)
    with pytest.raises(EncryptionError, match="topicloom key encrypt"):
        read_session(tmp_path, KEY)
    for _ in range(2):
        assert encrypt(tmp_path, KEY) == ()
        assert not find(WORDS, read_bytes(tmp_path))
        assert read_session(tmp_path, KEY) == before
    with opened(tmp_path) as (graph, store):
        assert len(ReflectionStore(store).facts("s")) == len(WORDS)
        assert tell(graph, thread(), "Hello?")


@pytest.mark.slow
def test_a_purge_leaves_nothing_that_the_key_could_open(tmp_path: Path) -> None:
    live(tmp_path, WORDS)
    with opened(tmp_path) as (graph, _):
        Memory.of(graph, thread()).forget("m1-m12")
    storage = EncryptedStorage(FileStorage(tmp_path), KEYS)
    chains = [path.stem for path in (tmp_path / "s").glob("*.jsonl")]
    bodies = [raw.body for c in chains for raw in storage.backend("s").entries(c).scan()]
    assert bodies
    assert not find(WORDS[1:], b"".join(bodies))


def test_items_of_a_store_are_as_they_were_put() -> None:
    inner = InMemoryStore()
    store = EncryptedStore(inner, KEYS)
    store.put(("topicloom", "a"), "key", {"text": WORDS[0], "n": [1, None]})
    store.put(("topicloom", "a"), "gone", {"text": "x"})
    store.delete(("topicloom", "a"), "gone")
    [item] = store.search(("topicloom",))
    assert item.key == "key"
    assert store.get(("topicloom", "a"), "key") == item
    assert store.get(("topicloom", "a"), "gone") is None
    assert WORDS[0] not in str(inner.search(()))
    assert "key" not in [item.key for item in inner.search(())]
    with pytest.raises(InputError, match="searched"):
        store.search(("topicloom",), filter={"n": 1})
    with pytest.raises(EncryptionError):
        EncryptedStore(inner, EncryptionKeys.of(OTHER)).search(("topicloom",))


async def test_items_are_there_on_an_event_loop_too() -> None:
    store = EncryptedStore(InMemoryStore(), KEYS)
    await store.aput(("a",), "key", {"text": WORDS[0]})
    found = await store.aget(("a",), "key")
    assert found is not None
    assert found.value == {"text": WORDS[0]}


@pytest.mark.slow
def test_sessions_in_the_graphs_store_have_keys_of_their_own() -> None:
    inner = InMemoryStore()
    made = Settings(encryption_key=KEY)
    builder = build_session_graph(settings=made, storage="store", roles=fake_roles())
    graph = builder.compile(checkpointer=InMemorySaver(), store=EncryptedStore(inner, KEYS))
    tell(graph, thread(), *WORDS)
    plain = "".join(str(item.value) for item in inner.search((), limit=1_000))
    assert not find(WORDS, plain.encode())
    log = EncryptedStorage(StoreStorage(inner), KEYS).open("s")
    assert len(log.entries("transcript")) == 2 * len(WORDS)


def read_session(folder: Path, key: str | None) -> list[dict[str, Any]]:
    files = FileStorage(folder)
    log = (EncryptedStorage(files, EncryptionKeys.of(key)) if key else files).open("s")
    rows = log.readable("transcript", list(log.entries("transcript")))
    return sorted(rows.values(), key=lambda row: row["seq"])


def encrypt(folder: Path, key: str) -> tuple[str, ...]:
    keys = EncryptionKeys.of(key)
    saver = local_checkpointer(folder, keys=keys)
    with open_local_store(folder, keys=keys) as store:
        left = reencrypt(EncryptedStorage(FileStorage(folder), keys), saver, store)
    saver.close()
    return left


@contextmanager
def opened_database(uri: str, key: str | None) -> Iterator[tuple[Graph, BaseStore, Any]]:
    """The same in PostgreSQL."""
    from langgraph.checkpoint.postgres import PostgresSaver

    keys = EncryptionKeys.of(key) if key else None
    store = open_postgres_store(uri, keys)
    made = Settings(window=2_000, encryption_key=key)
    with PostgresSaver.from_conn_string(uri) as saver:
        saver.serde = make_serializer(keys)
        builder = build_session_graph(
            settings=made, storage="store", roles=fake_roles(), clock=Clock()
        )
        yield builder.compile(checkpointer=saver, store=store), store, saver


def read_tables(uri: str) -> bytes:
    """All rows of all tables, as bytes."""
    with psycopg.connect(uri) as connection:
        tables = connection.execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        read = bytearray()
        for (table,) in tables:
            with connection.cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)") as rows:
                for row in rows:
                    read += row
        return bytes(read)


@pytest.mark.long
def test_a_database_is_encrypted_and_takes_another_key(tmp_path: Path) -> None:
    with open_postgres() as uri:
        with opened_database(uri, None) as (graph, store, _):
            talk(graph, store, WORDS)
        assert find(WORDS, read_tables(uri)) == WORDS
        with pytest.raises(EncryptionError), opened_database(uri, KEY) as (graph, *_):
            tell(graph, thread(), "Hello?")
        for key in (KEY, KEY, f"{OTHER},{KEY}"):
            with opened_database(uri, key) as (graph, store, saver):
                assert isinstance(store, EncryptedStore)
                storage = EncryptedStorage(StoreStorage(store.inner), EncryptionKeys.of(key))
                assert all("VACUUM" in left for left in reencrypt(storage, saver, store))
                assert not find(WORDS, read_tables(uri))
                tell(graph, thread(), WORDS[0])
        assert not find(WORDS, read_tables(uri))
        with opened_database(uri, OTHER) as (graph, store, saver):
            assert len(ReflectionStore(store).facts("s")) == len(WORDS)
            assert len(list(saver.list(thread()))) > len(WORDS)
            said = [m.text for m in Memory.of(graph, thread()).history() if m.role == "user"]
            assert said[: len(WORDS)] == [f"{text} ({n})" for n, text in enumerate(WORDS)]
        with pytest.raises(EncryptionError), opened_database(uri, KEY) as (graph, *_):
            tell(graph, thread(), "Hello?")


async def test_checkpoints_that_cannot_be_written_anew_are_named_with_a_way_out(
    tmp_path: Path,
) -> None:
    async with aiosqlite.connect(tmp_path / "c.sqlite") as connection:
        saver = AsyncSqliteSaver(connection, serde=make_serializer(KEYS))
        [left, *_] = await areencrypt(EncryptedStorage(FileStorage(tmp_path), KEYS), saver)
    assert "AsyncSqliteSaver stay as they are" in left
    assert "again with SqliteSaver or PostgresSaver" in left
