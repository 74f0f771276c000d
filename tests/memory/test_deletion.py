"""A deleted session is gone, wherever it was kept, and its thread can begin anew."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from sessions import chatter, check_kept, kept, open_graph, tell, thread

from topicloom import adelete_session, delete_session, delete_with_threads
from topicloom.memory.stored import get_session, make_review_thread
from topicloom.reflection.facts import Fact, FactChanges
from topicloom.reflection.store import ReflectionStore
from topicloom.storage.files import FileStorage
from topicloom.storage.stores import StoreStorage

SECRET = "XSECRETX"
TEXTS = [f"{chatter('茶', 1)} {SECRET}", *(chatter("茶山"[n % 2], n) for n in range(2, 6))]
Delete = Callable[[Any, str], None]


def delete_by_thread(graph: Any, name: str) -> None:
    delete_with_threads(graph.checkpointer, graph).delete_thread(name)


def everything(folder: Path) -> str:
    return "".join(p.read_text("latin-1") for p in folder.rglob("*") if p.is_file())


@pytest.mark.parametrize("delete", [delete_session, delete_by_thread])
def test_nothing_is_left_and_the_thread_begins_anew(tmp_path: Path, delete: Delete) -> None:
    store = InMemoryStore()
    with SqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
        graph = open_graph(tmp_path, checkpointer=saver, store=store)
        for name in ("s", "other"):
            tell(graph, thread(name), *TEXTS, keep=2)
            fact = Fact(f"The code is {SECRET}", ("m1",), "2026-03-02")
            ReflectionStore(store).change_facts(name, FactChanges((fact,)))
        review = thread(make_review_thread("s"))  # of one that was killed
        graph.update_state(review, {"messages": [("user", SECRET)]}, as_node="finalize")
        delete(graph, "s")
        assert graph.get_state(review).created_at is None
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
    from topicloom import purge_messages

    saver = InMemorySaver()
    graph = open_graph(tmp_path, checkpointer=saver)
    delete_with_threads(saver, graph)
    tell(graph, thread(), *TEXTS)
    storage = FileStorage(tmp_path)
    session = get_session(graph, thread())
    plan = kept(tmp_path, session).plan_purge(session, [1])
    purge_messages(graph, thread(), storage, plan)
    assert len(check_kept(kept(tmp_path, session), session)) == 10


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
