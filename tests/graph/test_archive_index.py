"""Archived topics in a vector store: handed over by reviews, asked for last of all."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from reviewed import CONFIG, World
from sessions import last_receipt, record, tell, thread

from topicloom import (
    Receipt,
    StorageError,
    areview_session,
    forget_topics,
    get_session,
    review_session,
)
from topicloom.review.archive_index import build_topic_documents
from topicloom.search.hashing import HashingEmbedder
from topicloom.testing import NameRouter, make_topic_search


class Hashed(Embeddings):
    """Vectors of characters; counts the documents that it was asked for."""

    def __init__(self) -> None:
        self.documents = 0
        self._embedder = HashingEmbedder(256)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents += len(texts)
        return [[float(x) for x in row] for row in self._embedder.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        return [float(x) for x in self._embedder.embed([text])[0]]


class Everyones(InMemoryVectorStore):
    """A store that does not filter."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return super().similarity_search(query, k)


class Untold(InMemoryVectorStore):
    """A store that does not say what it holds."""

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        raise NotImplementedError


class OutOfOrder(InMemoryVectorStore):
    """A store that raises, at everything or after so many documents."""

    def __init__(self, embedding: Embeddings, after: int = 0) -> None:
        super().__init__(embedding)
        self.after = after
        self.asked = 0

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        self.asked += 1
        raise ConnectionError("no route to the store")

    def add_documents(
        self, documents: list[Document], ids: list[str] | None = None, **kwargs: Any
    ) -> list[str]:
        self.asked += 1
        super().add_documents(documents[: self.after])
        raise ConnectionError("no route to the store")


class Slow(InMemoryVectorStore):
    """A store that takes its time."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        time.sleep(0.2)
        return super().similarity_search(query, k, **kwargs)


def in_faiss() -> VectorStore:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says at import that it is not looked after any more
        from langchain_community.docstore.in_memory import InMemoryDocstore
        from langchain_community.vectorstores import FAISS
    found: VectorStore = FAISS(Hashed(), faiss.IndexFlatL2(256), InMemoryDocstore(), {})
    return found


def in_memory() -> VectorStore:
    return InMemoryVectorStore(Hashed())


FAISS = pytest.param(in_faiss, marks=pytest.mark.slow)


@pytest.fixture(params=[in_memory, FAISS])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    make: Callable[[], VectorStore] = request.param
    world = World(tmp_path, index=make(), router=NameRouter({}))
    world.begin()
    return world


@pytest.fixture
def simple(tmp_path: Path) -> World:
    world = World(tmp_path, index=in_memory(), router=NameRouter({}))
    world.begin()
    return world


def held(world: World) -> list[Document]:
    """What the store holds of the session."""
    assert world.index is not None
    return world.index.similarity_search("茶", 100, filter=Everything())


class Everything(dict[str, str]):
    """A filter that lets everything through."""

    def __call__(self, found: object) -> bool:
        return True


def embedded(world: World) -> int:
    embeddings = world.index.embeddings if world.index is not None else None
    assert isinstance(embeddings, Hashed)
    return embeddings.documents


def ask(world: World, query: str = "茶", **more: Any) -> Receipt:
    """A turn in which the model asks for more topics."""
    world.responder.script = [make_topic_search(query, **more), "Well."]
    tell(world.graph, CONFIG, "What did we say then?")
    return last_receipt(world.folder, world.graph, CONFIG)


def found(receipt: Receipt) -> tuple[str, ...]:
    """The topics that the search found."""
    return receipt.searches[0].found


class TestHandingOver:
    @pytest.mark.slow
    def test_a_document_for_each_exchange_and_one_for_the_summary(self, world: World) -> None:
        report = world.review()
        tea = world.id_of("茶")
        assert report.archived == (tea,)
        documents = {d.metadata["messages"]: d for d in held(world)}
        stored_messages = world.store.topic_messages(world.session, world.topic_table[tea])
        first, last = stored_messages[0], stored_messages[-1]
        pairs = {
            f"{a.id}-{b.id}": (a, b)
            for a, b in zip(stored_messages[::2], stored_messages[1::2], strict=True)
        }
        assert set(documents) == {*pairs, f"{first.id}-{last.id}"}
        assert documents[f"{first.id}-{last.id}"].page_content == "茶\n茶, 6 summed up"
        for messages, (asked, answered) in pairs.items():
            assert documents[messages].page_content == f"{asked.line}\n{answered.line}"
            assert documents[messages].metadata == {
                "session": "s",
                "topic": tea,
                "messages": messages,
                "first_at": asked.time,
                "last_at": answered.time,
                "ref": documents[messages].metadata["ref"],
            }
        (call,) = (c for c in report.calls if c.role == "router")
        assert world.index is not None
        assert (call.model, call.topic, call.remarks) == (
            type(world.index).__name__,
            tea,
            ("4 added",),
        )

    @pytest.mark.slow
    def test_again_adds_nothing(self, world: World) -> None:
        world.review()
        before, made = {d.id for d in held(world)}, embedded(world)
        report = world.review()
        assert (report.calls, report.troubles) == ((), ())
        assert {d.id for d in held(world)} == before
        assert embedded(world) == made

    @pytest.mark.slow
    def test_what_is_revived_is_taken_out(self, world: World) -> None:
        world.review()
        assert found(ask(world))
        report = world.review()
        assert held(world) == []
        assert [c.remarks for c in report.calls if c.role == "router"] == [("4 removed",)]
        assert world.review().calls == ()

    @pytest.mark.slow
    def test_what_is_archived_once_more_comes_back(self, simple: World) -> None:
        simple.review()
        before = {d.id for d in held(simple)}
        ask(simple)
        simple.review()
        simple.sleep("茶")
        simple.clock.now += timedelta(days=40)
        simple.review()
        assert {d.id for d in held(simple)} >= before

    @pytest.mark.slow
    def test_a_purge_reaches_it(self, world: World) -> None:
        world.review()
        assert world.index is not None
        store, tea = world.store, world.topic_table[world.id_of("茶")]
        gone = store.topic_messages(world.session, tea)[:2]
        store.purge(plan := store.plan_purge(world.session, [r.seq for r in gone]))
        forget_topics(world.index, store, "s", plan.topics)
        assert held(world) == []
        world.review()
        left = [d.page_content for d in held(world)]
        assert len(left) == 3
        assert not any(r.text in text for r in gone for text in left)

    @pytest.mark.slow
    def test_a_purge_that_nobody_told_of_is_seen_by_the_next_review(self, world: World) -> None:
        world.review()
        store, tea = world.store, world.topic_table[world.id_of("茶")]
        gone = store.topic_messages(world.session, tea)[:2]
        store.purge(store.plan_purge(world.session, [r.seq for r in gone]))
        world.review()
        left = [d.page_content for d in held(world)]
        assert len(left) == 3
        assert not any(r.text in text for r in gone for text in left)

    @pytest.mark.slow
    def test_a_store_that_does_not_say_what_it_holds(self, simple: World) -> None:
        simple.index = Untold(Hashed())
        simple.review()
        simple.review()
        assert len(held(simple)) == 4
        ask(simple)
        simple.review()
        assert held(simple) == []

    @pytest.mark.slow
    def test_a_store_out_of_order_is_told_of_and_made_up_for(self, simple: World) -> None:
        whole = simple.index
        simple.index = broken = OutOfOrder(Hashed(), after=2)
        report = simple.review()
        tea = simple.id_of("茶")
        assert report.archived == (tea,)
        trouble = "ConnectionError: no route to the store"
        assert report.troubles == (f"{tea} was not handed over to OutOfOrder: {trouble}",)
        assert [c.failure for c in report.calls if c.role == "router"] == [trouble]
        assert isinstance(whole, InMemoryVectorStore)
        whole.store = broken.store
        simple.index = whole
        assert [c.remarks for c in simple.review().calls] == [("2 added",)]
        assert len(held(simple)) == 4

    @pytest.mark.slow
    def test_it_is_not_asked_for_ever(self, tmp_path: Path) -> None:
        tags = tuple("茶雨山海风云")
        broken = OutOfOrder(Hashed())
        world = World(tmp_path, index=broken, router=NameRouter({}))
        world.reviewer.importance = dict.fromkeys(tags, 0.0)
        world.begin(*tags)
        report = world.review()
        assert len(report.archived) > 3
        assert broken.asked == len(report.troubles) == 3

    @pytest.mark.slow
    def test_a_dry_run_hands_nothing_over(self, simple: World) -> None:
        assert simple.review(dry_run=True).archived
        assert held(simple) == []

    @pytest.mark.slow
    def test_on_the_event_loop(self, world: World) -> None:
        again = partial(areview_session, world.graph, CONFIG, archive_index=world.index)
        report = asyncio.run(again())
        assert [c.remarks for c in report.calls if c.role == "router"] == [("4 added",)]
        assert len(held(world)) == 4
        assert asyncio.run(again()).calls == ()


class TestAskedLast:
    @pytest.mark.slow
    def test_its_hits_lead_to_the_originals(self, world: World) -> None:
        world.review()
        receipt = ask(world)
        tea = world.id_of("茶")
        assert found(receipt) == (tea,)
        assert receipt.searches[0].reason == ""
        assert world.index is not None
        routers = [c.model for c in receipt.calls if c.role == "router"]
        assert routers == ["embedded", type(world.index).__name__]
        assert world.topic_table[tea].status == "open"
        original = next(r for r in world.checked() if r.text.startswith("茶"))
        assert original.text in "\n".join(world.responder.prompts[-1])

    @pytest.mark.slow
    def test_what_it_says_itself_is_never_quoted(self, simple: World) -> None:
        simple.review()
        index = simple.index
        assert isinstance(index, InMemoryVectorStore)
        for row in index.store.values():
            row["text"] = "the store says something else"
        assert found(ask(simple))
        assert "something else" not in "\n".join(simple.responder.prompts[-1])

    @pytest.mark.slow
    def test_a_complaint_leads_to_it_too(self, world: World) -> None:
        world.review()
        world.awake = {"floor": 0, "usual": 4, "ceiling": 4}
        tell(world.graph, CONFIG, "你忘了吗？茶的事情。")
        receipt = last_receipt(world.folder, world.graph, CONFIG)
        assert found(receipt) == (world.id_of("茶"),)

    @pytest.mark.slow
    def test_on_the_event_loop(self, world: World) -> None:
        world.review()
        world.responder.script = [make_topic_search("茶"), "Well."]
        said = {"messages": [HumanMessage("What did we say then?")]}
        asyncio.run(world.graph.ainvoke(said, CONFIG))
        receipt = last_receipt(world.folder, world.graph, CONFIG)
        assert found(receipt) == (world.id_of("茶"),)

    @pytest.mark.slow
    def test_not_if_anything_else_was_found(self, simple: World) -> None:
        simple.review()
        simple.router = NameRouter({"雨": 0.9})
        assert [c.model for c in ask(simple).calls if c.role == "router"] == ["embedded"]
        assert simple.named()["茶"] == "archived"

    @pytest.mark.slow
    def test_what_it_was_searched_for_was_searched(self, simple: World) -> None:
        """Whether or not it leads anywhere; where it fails, nobody looked."""
        simple.review()
        index, simple.index = simple.index, InMemoryVectorStore(Hashed())
        assert ask(simple).searches[0].scope.unsearched == 0
        simple.index = OutOfOrder(Hashed())
        assert ask(simple).searches[0].scope.unsearched == 1
        simple.index = index
        assert found(ask(simple)) == (simple.id_of("茶"),)

    @pytest.mark.slow
    def test_not_without_anything_archived(self, simple: World) -> None:
        assert [c.model for c in ask(simple).calls if c.role == "router"] == ["embedded"]

    @pytest.mark.slow
    def test_only_what_was_talked_about_then(self, simple: World) -> None:
        simple.review()
        assert found(ask(simple, when="2025-11")) == ()
        assert found(ask(simple, when="2026-03-02")) == (simple.id_of("茶"),)

    @pytest.mark.slow
    def test_a_store_out_of_order_costs_its_lead(self, simple: World) -> None:
        simple.review()
        simple.index = OutOfOrder(Hashed())
        receipt = ask(simple)
        assert [(c.role, c.model, c.failure) for c in receipt.failures] == [
            ("router", "OutOfOrder", "ConnectionError: no route to the store")
        ]
        assert found(receipt) == ()
        assert receipt.searches[0].reason
        simple.checked()

    @pytest.mark.slow
    def test_a_late_one_is_not_waited_for(self, simple: World) -> None:
        simple.review()
        graph = simple.graph
        simple.index = Slow(Hashed())
        simple.seconds = 0.05
        assert graph is not simple.graph
        receipt = ask(simple)
        assert [c.failure for c in receipt.failures] == ["no answer within 0.05 s"]


class TestTenants:
    def two(self, folder: Path, index: VectorStore) -> World:
        """Two sessions with one store; the other one has talked of what this one asks for."""
        world = World(folder, index=index, router=NameRouter({}))
        world.begin("云", "雨", "山", "海")
        world.reviewer.importance = {"云": 0.0}
        world.review()
        other = thread("other")
        for n in range(1, 4):
            record(world.graph, other, HumanMessage(f"茶：别人第{n}次说到茶的密码"))
        tell(world.graph, other, "Hello", keep=0)
        session = get_session(world.graph, other).model_copy(update={"active": {}})
        state = {"session": session.model_dump(mode="json", exclude_defaults=True)}
        world.graph.update_state(other, state, as_node="finalize")
        world.clock.now += timedelta(days=30)
        world.reviewer.importance = {"茶": 0.0, "Hello": 0.0, "云": 0.0}
        assert review_session(world.graph, other, archive_index=index).archived
        return world

    @pytest.mark.slow
    @pytest.mark.parametrize("make", [in_memory, in_faiss, lambda: Everyones(Hashed())])
    def test_nothing_of_another_session(
        self, tmp_path: Path, make: Callable[[], VectorStore]
    ) -> None:
        world = self.two(tmp_path, make())
        receipt = ask(world, "茶的密码")
        own = {t.id for t in world.topic_table if t.status in ("open", "archived")}
        assert set(found(receipt)) <= own
        assert "别人" not in "\n".join(world.responder.prompts[-1])
        world.checked()

    @pytest.mark.slow
    def test_nothing_of_another_session_though_the_ids_are_the_same(self, tmp_path: Path) -> None:
        index = Everyones(Hashed())
        world = World(tmp_path, index=index, router=NameRouter({}))
        world.begin()
        world.review()
        for row in index.store.values():
            row["metadata"] = {**row["metadata"], "session": "another"}
        assert found(ask(world)) == ()

    @pytest.mark.slow
    def test_nothing_of_another_branch(self, simple: World) -> None:
        simple.review()
        index = simple.index
        assert isinstance(index, InMemoryVectorStore)
        for row in index.store.values():
            row["metadata"] = {**row["metadata"], "ref": "0" * 16}
        assert found(ask(simple)) == ()

    @pytest.mark.slow
    def test_nothing_of_what_is_not_archived(self, simple: World) -> None:
        simple.review()
        index = simple.index
        assert isinstance(index, InMemoryVectorStore)
        for row in index.store.values():
            row["metadata"] = {**row["metadata"], "topic": simple.id_of("雨")}
        assert found(ask(simple)) == ()

    @pytest.mark.slow
    @pytest.mark.parametrize("metadata", [{}, {"session": "s"}, {"session": "s", "topic": ["t1"]}])
    def test_documents_that_somebody_else_put_there(
        self, simple: World, metadata: dict[str, Any]
    ) -> None:
        simple.review()
        index = Everyones(Hashed())
        index.add_documents([Document("茶", metadata=metadata)])
        simple.index = index
        receipt = ask(simple)
        assert (found(receipt), receipt.failures) == ((), ())

    @pytest.mark.slow
    def test_ids_follow_from_session_and_messages(self, simple: World) -> None:
        simple.review()
        topic = simple.topic_table[simple.id_of("茶")]
        one, same, other = (
            next(iter(build_topic_documents(simple.store, session, [topic])))
            for name in ("s", "s", "\ud800/..")
            for session in [simple.session.model_copy(update={"id": name})]
        )
        assert not isinstance(one, StorageError)
        assert not isinstance(other, StorageError)
        assert one == same
        assert set(one.ids).isdisjoint(other.ids)
        assert {d.id for d in one.documents} <= set(one.ids)
