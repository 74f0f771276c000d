"""What `Memory` shows, on every storage, through a graph and through the storage alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import product
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from sessions import past, record, tell, thread

from topicloom import (
    Fact,
    FactChanges,
    InputError,
    Memory,
    ReflectionStore,
    Settings,
    Storage,
    TurnOptions,
    build_session_graph,
)
from topicloom.hosting import Graph
from topicloom.testing import Clock, fake_roles

Reopen = Callable[[], Storage]
CONFIG = thread()


class Talk:
    """A session of two topics, three rounds each, and a tail."""

    def __init__(self, reopen: Reopen) -> None:
        self.reopen, self.store = reopen, InMemoryStore()
        settings = Settings.model_validate({"window": 2_000, "fsync": False})
        self.graph: Graph = build_session_graph(
            settings=settings, roles=fake_roles(), storage=reopen(), clock=Clock()
        ).compile(checkpointer=InMemorySaver(), store=self.store)
        record(self.graph, CONFIG, *past("茶", "雨", rounds=3))
        tell(self.graph, CONFIG, "山：还有吗？", keep=0)

    def both(self) -> list[Memory]:
        alone = Memory(self.reopen(), "s", store=self.store, embedder="hashing")
        return [Memory.of(self.graph, CONFIG), alone]


@pytest.fixture
def talk(reopen: Reopen) -> Talk:
    return Talk(reopen)


@pytest.mark.slow
def test_topics_and_their_messages(talk: Talk) -> None:
    for memory in talk.both():
        tea, rain = memory.topics()
        assert (tea.name, tea.count, tea.state, tea.full_name) == ("茶", 6, "active", "茶")
        assert [m.id for m in rain.messages()] == [f"m{n}" for n in range(7, 13)]
        assert memory.topic("t1") == tea
        with pytest.raises(InputError, match=r"no topic 't9' \(there: t1 to t2"):
            memory.topic("t9")


def test_quotes_are_word_for_word(talk: Talk) -> None:
    for memory in talk.both():
        assert memory.quote("m1").text == past("茶", rounds=3)[0].content
        for unknown in ("m99", "m0", "x", "m"):
            with pytest.raises(InputError, match="there: m1 to m14"):
                memory.quote(unknown)


@pytest.mark.slow
def test_a_search_finds_topics_and_the_tail_and_keeps_to_days(talk: Talk) -> None:
    for memory in talk.both():
        best = memory.search("第2次说到雨的事情")[:3]
        assert [found.topic for found in best] == ["t2"] * 3
        assert "m9" in [found.message.id for found in best]
        (last,) = memory.search("山：还有吗？", limit=1)
        assert (last.message.id, last.topic) == ("m13", "")
        day = last.message.day
        assert memory.search("雨", since=day, until=date.fromisoformat(day))
        assert memory.search("雨", since="2031-01-01") == []
        with pytest.raises(InputError, match="'soon' is not a day"):
            memory.search("雨", since="soon")


def test_a_number_of_messages_or_turns_that_cannot_be_is_named(talk: Talk) -> None:
    counts: list[Any] = [0, -1, 2.5, "all"]
    for memory, count in product(talk.both(), counts):
        for ask in (partial(memory.search, "雨"), memory.history):
            with pytest.raises(InputError, match=f"limit={count!r} .* 1 or more"):
                ask(limit=count)
        with pytest.raises(InputError, match=f"newest={count!r} .* 1 or more"):
            memory.receipts(count)
    for memory in talk.both():
        with pytest.raises(InputError, match=r"skipped=-1 .* 0 or more"):
            memory.receipts(1, -1)


@pytest.mark.slow
def test_what_is_said_later_is_found_by_the_same_memory(talk: Talk) -> None:
    memory = Memory.of(talk.graph, CONFIG)
    memory.search("海")
    tell(talk.graph, CONFIG, "海：第一次说到海。")
    assert memory.search("海：第一次说到海。")[0].message.id == "m15"
    tell(talk.graph, CONFIG, "好", keep=0)
    assert memory.search("海：第一次说到海。")[0].topic


def test_history_comes_in_pages(talk: Talk) -> None:
    for memory in talk.both():
        assert memory.history(limit=10**29) == memory.history(limit=None)
        page = memory.history(limit=5)
        assert [m.id for m in page] == ["m10", "m11", "m12", "m13", "m14"]
        assert memory.history(before=page[0].id, limit=100)[0].id == "m1"
        assert memory.history(before="m1") == []


@pytest.mark.slow
def test_what_was_taken_back_is_out_of_view(talk: Talk) -> None:
    tell(talk.graph, CONFIG, "海：一个秘密。")
    newest = Memory.of(talk.graph, CONFIG).history(limit=2)
    assert newest[0].source
    facts = ReflectionStore(talk.store)
    kept = Fact("has a secret", (newest[0].id,), "2026-03-02")
    facts.change_facts("s", FactChanges((kept, Fact("drinks tea", ("m1",), "2026-03-02")), ()))
    assert len(talk.both()[0].facts()) == 2
    talk.graph.update_state(CONFIG, {"messages": [RemoveMessage(newest[0].source)]})
    talk.graph.invoke({"messages": [HumanMessage("好")]}, CONFIG, context=TurnOptions(answer=False))
    for memory in talk.both():
        assert "秘密" not in memory.quote(newest[0].id).text
        assert newest[0].id not in [m.id for m in memory.history(limit=3)]
        assert len(memory.history(limit=3)) == 3
        assert all("秘密" not in found.message.text for found in memory.search("秘密"))
        assert [fact.text for fact in memory.facts().values()] == ["drinks tea"]


def test_receipts_and_the_session(talk: Talk) -> None:
    for memory in talk.both():
        (newest,) = memory.receipts(newest=1)
        assert newest.turn == memory.session().turn == len(memory.receipts())


@pytest.mark.slow
def test_an_old_checkpoint_shows_what_was_then(talk: Talk) -> None:
    before = talk.graph.get_state(CONFIG).config
    tell(talk.graph, CONFIG, "海：第一次说到海。", keep=0)
    old = Memory.of(talk.graph, before)
    assert old.session().count == 14
    assert [found.message.id for found in old.search("海：第一次说到海。", limit=1)] != ["m15"]
    assert Memory.of(talk.graph, CONFIG).session().count == 16


async def test_on_the_event_loop(talk: Talk) -> None:
    memory = Memory.of(talk.graph, CONFIG)
    topics = await memory.atopics()
    assert await topics[0].amessages() == memory.topic("t1").messages()
    assert await memory.asearch("雨", limit=3) == memory.search("雨", limit=3)
    assert await memory.aquote("m1") == memory.quote("m1")


def test_a_session_that_is_not_there_is_empty(reopen: Reopen) -> None:
    memory = Memory(reopen(), "nobody")
    assert (memory.topics(), memory.history(), memory.search("x")) == ([], [], [])
    assert (memory.receipts(), memory.facts()) == ([], {})
