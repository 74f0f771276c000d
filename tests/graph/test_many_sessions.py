"""Sessions in the store that the graph is compiled with, and many sessions at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore
from sessions import chatter, check_kept, kept, open_graph, past, prompt_of, record, tell, thread

from topicloom import (
    Roles,
    SessionStore,
    Settings,
    StorageUnavailableError,
    StoreStorage,
    build_session_graph,
    get_session,
)
from topicloom.hosting import Graph
from topicloom.storage.store_items import items_in, put_items
from topicloom.testing import Clock, ScriptedResponder, fake_roles

pytestmark = pytest.mark.long

CONFIG = thread()


def over(store: BaseStore | None, roles: Roles | None = None) -> Graph:
    """A graph whose sessions live in a store."""
    settings = Settings(window=2_000, recall_tokens=500)
    graph = build_session_graph(
        settings=settings, roles=roles or fake_roles(), storage="store", clock=Clock()
    )
    return graph.compile(checkpointer=InMemorySaver(), store=store)


class TestStore:
    def test_everything_is_kept_there(self) -> None:
        store = InMemoryStore()
        graph = over(store)
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, "Hello", keep=0)
        tell(graph, CONFIG, "And now?")
        session = get_session(graph, CONFIG)
        transcript = check_kept(SessionStore(StoreStorage(store).open("s")), session)
        assert len(transcript) == 20
        assert session.topics == 2

    async def test_on_the_event_loop(self) -> None:
        store = InMemoryStore()
        graph = over(store)
        await graph.ainvoke({"messages": past("茶", "雨")}, CONFIG)
        for text in ("Hello", "你忘了吗？"):
            await graph.ainvoke({"messages": [HumanMessage(text)]}, CONFIG)
        session = get_session(graph, CONFIG)
        assert len(check_kept(SessionStore(StoreStorage(store).open("s")), session)) == 20

    def test_without_a_store_it_says_so(self) -> None:
        with pytest.raises(StorageUnavailableError, match="store="):
            tell(over(None), CONFIG, "Hello")

    def test_one_graph_compiled_over_two_stores_keeps_them_apart(self) -> None:
        responder = ScriptedResponder()
        settings = Settings(window=2_000)
        builder = build_session_graph(
            settings=settings, roles=fake_roles(responder), storage="store"
        )
        stores = InMemoryStore(), InMemoryStore()
        graphs = [builder.compile(checkpointer=InMemorySaver(), store=s) for s in stores]
        for number, graph in enumerate(graphs):
            tell(graph, CONFIG, f"Hello {number}")
        for number, (graph, store) in enumerate(zip(graphs, stores, strict=True)):
            session = get_session(graph, CONFIG)
            stored_messages = SessionStore(StoreStorage(store).open("s")).messages(session)
            assert [r.text for r in stored_messages] == [f"Hello {number}", "All right, noted."]


class _CountingStore(InMemoryStore):
    """Counts how often it is asked: each time is a round trip to a database."""

    asked = 0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        self.asked += 1
        return super().batch(ops)


class TestRoundTrips:
    def test_of_a_turn_there_are_fifteen(self) -> None:
        """Three looks at what other writers did, two at what was purged; two for each of the
        question, the reply, the receipt and the session's head; what was said is read once."""
        store = _CountingStore()
        graph = over(store)
        for n in range(3):
            store.asked = 0
            tell(graph, CONFIG, f"Hello {n}")
        assert store.asked == 15

    def test_what_is_longer_than_a_page_is_read_whole(self) -> None:
        store = _CountingStore()
        put_items(store, ("a",), {str(n): {"n": n} for n in range(1_000)})
        store.asked = 0
        assert len(list(items_in(store, ("a",)))) == 1_000
        assert store.asked == 3


class TestManyAtOnce:
    def test_sessions_in_threads(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)

        def converse(name: str) -> None:
            for n in range(12):
                tell(graph, thread(name), chatter(f"{name}的茶", n, characters=120))

        names = [f"甲{n}" for n in range(6)]
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(converse, names))
        for name in names:
            session = get_session(graph, thread(name))
            transcript = check_kept(kept(tmp_path, session), session)
            assert session.topics > 0
            assert {r.text[:2] for r in transcript if r.role == "user"} == {name}
            assert len(transcript) == 24

    async def test_sessions_on_the_event_loop(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))

        async def converse(name: str) -> None:
            for n in range(10):
                said: Any = {"messages": [HumanMessage(chatter(f"{name}的茶", n, characters=120))]}
                await graph.ainvoke(said, thread(name))

        names = [f"甲{n}" for n in range(6)]
        await asyncio.gather(*map(converse, names))
        for name in names:
            session = get_session(graph, thread(name))
            assert len(check_kept(kept(tmp_path, session), session)) == 20
        for request in responder.requests:
            others = [name for name in names if f"{name}的茶" in prompt_of(request)]
            assert others == [request.session]

    def test_two_processes_worth_of_graphs_share_a_folder(self, tmp_path: Path) -> None:
        """Each with a cache of its own, over one checkpointer, turn about."""
        saver = InMemorySaver()
        graphs = [open_graph(tmp_path, checkpointer=saver) for _ in range(2)]
        for n in range(16):
            tell(graphs[n % 2], CONFIG, chatter("茶雨"[n % 2], n, characters=120))
        session = get_session(graphs[0], CONFIG)
        assert len(check_kept(kept(tmp_path, session), session)) == 32
        assert session.topics == 2

    def test_more_sessions_than_are_kept_open(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        for n in range(70):
            record(graph, thread(f"s{n}"), HumanMessage(f"Hello {n}"))
        for n in (0, 35, 69):
            tell(graph, thread(f"s{n}"), "Again")
            session = get_session(graph, thread(f"s{n}"))
            texts = [r.text for r in kept(tmp_path, session).messages(session)]
            assert texts == [f"Hello {n}", "Again", "All right, noted."]
