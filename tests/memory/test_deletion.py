"""A deleted session is gone, wherever it was kept, and its thread can begin anew."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from sessions import chatter, check_kept, kept, open_graph, tell, thread

from topicloom import (
    Fact,
    FactChanges,
    FileStorage,
    Memory,
    ReflectionStore,
    StoreStorage,
    adelete_session,
    delete_session,
    delete_with_threads,
    get_session,
)
from topicloom.hosting import find_deps, open_local_store

SECRET = "XSECRETX"
TEXTS = [f"{chatter('茶', 1)} {SECRET}", *(chatter("茶山"[n % 2], n) for n in range(2, 6))]
Delete = Callable[[Any, str], None]


def delete_by_thread(graph: Any, name: str) -> None:
    delete_with_threads(graph.checkpointer, graph).delete_thread(name)


def everything(folder: Path) -> str:
    return "".join(p.read_text("latin-1") for p in folder.rglob("*") if p.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("delete", [delete_session, delete_by_thread])
def test_nothing_is_left_and_the_thread_begins_anew(tmp_path: Path, delete: Delete) -> None:
    store = InMemoryStore()
    with SqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        graph = open_graph(tmp_path, checkpointer=saver, store=store)
        for name in ("s", "other"):
            tell(graph, thread(name), *TEXTS, keep=2)
            fact = Fact(f"The code is {SECRET}", ("m1",), "2026-03-02")
            ReflectionStore(store).change_facts(name, FactChanges((fact,)))
        delete(graph, "s")
        assert FileStorage(tmp_path).sessions() == ["other"]
        assert ReflectionStore(store).facts("s") == {}
        assert len(ReflectionStore(store).facts("other")) == 1
        assert everything(tmp_path).count(SECRET) > 0
        delete(graph, "other")
        assert SECRET not in everything(tmp_path)

        tell(graph, thread(), *TEXTS[1:], keep=2)
        session = get_session(graph, thread())
        assert len(check_kept(kept(tmp_path, session), session)) == 8
        assert not any(
            r.events[0].startswith("begun anew")
            for r in kept(tmp_path, session).receipts(session)
            if r.events
        )


def test_what_sqlite_left_of_rows_that_it_moved_goes_too(tmp_path: Path) -> None:
    """A copy that stays behind in a page is no row: `secure_delete` does not overwrite it."""
    path, numbers = tmp_path / "c.sqlite", random.Random(1)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.conn.execute("PRAGMA secure_delete = ON")
        graph = open_graph(tmp_path, checkpointer=saver)
        saver.setup()
        for number in range(600):
            name = f"t{number % 6}"
            said = f"<{name} {number}>".encode() * numbers.choice([5, 30, 150, 900])
            row = (name, "", f"{number:04}", None, "msgpack", said, b"{}")
            saver.conn.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        saver.conn.commit()
        for name in ("t0", "t1", "t2", "t3"):
            delete_session(graph, name)
            assert f"<{name} " not in everything(tmp_path)
        assert "<t4 " in everything(tmp_path)


def forget_all(graph: Any, name: str) -> None:
    assert Memory.of(graph, thread(name)).forget("m1").left == ()


def memory_in_storage(graph: Any, name: str) -> Memory:
    storage = find_deps(graph).workspaces.storage
    assert storage is not None
    return Memory(storage, name, store=graph.store)


def delete_in_storage(graph: Any, name: str) -> None:
    memory_in_storage(graph, name).delete()


def forget_in_storage(graph: Any, name: str) -> None:
    [checkpoints] = memory_in_storage(graph, name).forget("m1").left
    assert "checkpoints of thread" in checkpoints


def forget_facts(graph: Any, name: str) -> None:
    memory = Memory.of(graph, thread(name))
    for key in memory.facts():
        memory.forget_fact(key)


@pytest.mark.slow
@pytest.mark.parametrize(
    "delete",
    [
        delete_session,
        delete_by_thread,
        forget_all,
        forget_facts,
        delete_in_storage,
        forget_in_storage,
    ],
)
def test_facts_leave_nothing_in_their_file(tmp_path: Path, delete: Delete) -> None:
    """A row that was deleted stays in a free page."""
    with open_local_store(tmp_path) as store:
        assert isinstance(store, SqliteStore)
        store.conn.execute("PRAGMA secure_delete = OFF")  # SQLite's default, not that of Debian
        graph = open_graph(tmp_path, checkpointer=InMemorySaver(), store=store)
        tell(graph, thread(), *TEXTS, keep=2)
        kept_facts = ReflectionStore(store)
        for number in range(60):
            said = f"The code {number} is {SECRET} {'and' * number}"
            kept_facts.change_facts("s", FactChanges((Fact(said, ("m1",), "2026-03-02"),)))
        file = tmp_path / "store.sqlite"
        assert SECRET.encode() in file.read_bytes()
        delete(graph, "s")
        assert kept_facts.facts("s") == {}
        assert SECRET.encode() not in file.read_bytes()


@pytest.mark.slow
def test_facts_in_a_file_that_another_reads_are_said_to_be_left(tmp_path: Path) -> None:
    with open_local_store(tmp_path) as store, open_local_store(tmp_path) as other:
        assert isinstance(store, SqliteStore)
        assert isinstance(other, SqliteStore)
        store.conn.execute("PRAGMA journal_mode = WAL")  # or no fact could be removed meanwhile
        store.conn.execute("PRAGMA busy_timeout = 1")
        graph = open_graph(tmp_path, checkpointer=InMemorySaver(), store=store)
        tell(graph, thread(), *TEXTS, keep=2)
        facts = (Fact("The code is 1", ("m1",), "2026-03-02"), Fact("It rains", ("m1",), ""))
        ReflectionStore(store).change_facts("s", FactChanges(facts))
        with closing(other.conn.execute("SELECT * FROM store")) as reading:
            assert reading.fetchone()
            left = Memory.of(graph, thread()).forget("m1").left
        assert left == ("free pages of the facts' file, which another process uses",)
        assert Memory.of(graph, thread()).forget("m1").left == ()


async def test_facts_in_an_asynchronous_store(tmp_path: Path) -> None:
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "facts.sqlite")) as store:
        await store.setup()
        await store.conn.execute("PRAGMA secure_delete = OFF")
        graph = open_graph(tmp_path, checkpointer=InMemorySaver(), store=store)
        fact = Fact(f"The code is {SECRET}", ("m1",), "2026-03-02")
        changes = FactChanges((fact,))
        await asyncio.to_thread(ReflectionStore(store).change_facts, "s", changes)
        await graph.ainvoke({"messages": [("user", TEXTS[0])]}, thread())
        assert SECRET in everything(tmp_path)
        await adelete_session(graph, "s")
        assert SECRET not in everything(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("by_thread", [False, True])
async def test_an_asynchronous_saver(tmp_path: Path, by_thread: bool) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        graph = open_graph(tmp_path, checkpointer=saver)
        for text in TEXTS:
            await graph.ainvoke({"messages": [("user", text)]}, thread())
        if by_thread:
            await delete_with_threads(saver, graph).adelete_thread("s")
        else:
            await adelete_session(graph, "s")
        assert SECRET not in everything(tmp_path)


@pytest.mark.slow
def test_of_a_store_too() -> None:
    store = InMemoryStore()
    graph = open_graph(Path(), checkpointer=InMemorySaver(), store=store, storage="store")
    for name in ("s", "s.2"):
        tell(graph, thread(name), *TEXTS, keep=2)
    delete_session(graph, "s")
    assert StoreStorage(store).sessions() == ["s.2"]
    left = store.search((), limit=1_000)
    assert {item.namespace[1] for item in left} == {"s%2E2", "%sessions"}
    tell(graph, thread(), TEXTS[1])
    assert get_session(graph, thread()).count == 2


def test_a_purge_deletes_no_session(tmp_path: Path) -> None:
    saver = InMemorySaver()
    graph = open_graph(tmp_path, checkpointer=saver)
    delete_with_threads(saver, graph)
    tell(graph, thread(), *TEXTS)
    session = get_session(graph, thread())
    Memory.of(graph, thread()).forget("m1")
    assert len(check_kept(kept(tmp_path, session), session)) == 10


@pytest.mark.slow
def test_killed_on_the_way_it_is_still_listed_and_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(open_graph(tmp_path), thread(), *TEXTS, keep=2)
    unlink, left = os.unlink, 0

    def stop_after_some(path: Any, *args: Any, **options: Any) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        unlink(path, *args, **options)

    for count in (0, 1, 1):
        left = count
        with monkeypatch.context() as patched:
            patched.setattr(os, "unlink", stop_after_some)
            with pytest.raises(KeyboardInterrupt):
                FileStorage(tmp_path).delete("s")
        assert FileStorage(tmp_path).sessions() == ["s"]
    FileStorage(tmp_path).delete("s")
    assert list(tmp_path.iterdir()) == []
