"""Daily limits: roles rest first, then replies are refused until the user's midnight."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, open_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from openai_behaviours import Reply, Usage, system_text
from openai_server import OpenAIServer
from sessions import past, record, tell, thread

from topicloom import (
    ConfigurationError,
    LimitReachedError,
    Memory,
    PersonMemory,
    Receipt,
    ReflectionStore,
    Settings,
    TopicMiddleware,
    TurnOptions,
    build_session_graph,
    delete_session,
    reflect_once,
    review_session,
)
from topicloom.hosting import Graph, find_deps
from topicloom.testing import Clock

CONFIG = thread()


@pytest.fixture
def server(openai_server: OpenAIServer) -> OpenAIServer:
    """A server whose every answer costs 100 tokens."""
    openai_server.otherwise(Reply("好的。", Usage(90, 10)))
    return openai_server


class Place:
    """Sessions with limits, which several processes may open."""

    def __init__(self, folder: Path, server: OpenAIServer, **limits: Any) -> None:
        self.clock = Clock()
        self.saver, self.store = InMemorySaver(), InMemoryStore()
        self.settings: dict[str, Any] = {
            "folder": folder,
            "fsync": False,
            "window": 2_000,
            "base_url": server.base_url,
            "api_key": "k",
            "max_retries": 0,
            "embedder": "hashing",
            "limits": limits,
        }

    def open(self, **settings: Any) -> Graph:
        """The graph, as a process of its own has it."""
        return build_session_graph(
            model="openai:strong",
            cheap_model="openai:cheap",
            settings=Settings.model_validate(self.settings | settings),
            clock=self.clock,
        ).compile(checkpointer=self.saver, store=self.store)

    def fill(self) -> Graph:
        """A process that has a session whose next turn reads topics."""
        graph = self.open()
        record(graph, CONFIG, *past("茶", "雨"))
        split = TurnOptions(answer=False, keep_messages=0)
        graph.invoke({"messages": [("user", "雨停了吗？")]}, CONFIG, context=split)
        return graph


def newest(graph: Graph) -> Receipt:
    return Memory.of(graph, CONFIG).receipts(1)[0]


def asked(server: OpenAIServer) -> int:
    return len(server.requests)


@pytest.mark.slow
def test_roles_rest_first_and_then_the_reply_is_refused(
    tmp_path: Path, server: OpenAIServer
) -> None:
    graph = Place(tmp_path, server, session=1_000, rest_at=0.2).fill()
    tell(graph, CONFIG, "茶的第2次说了什么？")
    assert "reader" in newest(graph).unasked  # the split has used more than a fifth
    assert newest(graph).unasked["reader"] == "the daily limit for this session is nearly used up"
    assert newest(graph).quoted  # the index stands in
    before = asked(server)
    while newest(graph).limits["session"] < 1:
        tell(graph, CONFIG, "茶的第3次呢？")
    calls = [call for r in Memory.of(graph, CONFIG).receipts() for call in r.calls]
    spent = sum(call.input_tokens + call.output_tokens for call in calls)
    assert find_deps(graph).spending.list_used("s") == {"session": spent / 1_000}
    refused = asked(server)
    assert before < refused < before + 12
    with pytest.raises(LimitReachedError, match=r"this session is used up \(1,000 tok") as found:
        tell(graph, CONFIG, "还在吗？")
    error = found.value
    assert (error.scope, error.limit, error.unit) == ("session", 1_000, "tokens")
    assert error.status == 429
    assert 0 < int(error.retry_after) <= 86_400
    assert asked(server) == refused


@pytest.mark.slow
def test_what_was_refused_is_answered_after_midnight(tmp_path: Path, server: OpenAIServer) -> None:
    place = Place(tmp_path, server, session=100)
    graph = place.open()
    tell(graph, CONFIG, "你好")
    with pytest.raises(LimitReachedError):
        tell(graph, CONFIG, "在吗？")
    said = Memory.of(graph, CONFIG).history()
    assert [m.text for m in said][-1] == "在吗？"
    place.clock.now += timedelta(days=1)
    graph.invoke(None, CONFIG)
    assert [m.text for m in Memory.of(graph, CONFIG).history()][-2:] == ["在吗？", "好的。"]
    assert newest(graph).limits == {"session": 1.0}


def test_the_day_is_the_users(tmp_path: Path, server: OpenAIServer) -> None:
    place = Place(tmp_path, server, session=100)  # 9:00 in China, the evening before in Honolulu
    graph = place.open()
    there = TurnOptions(timezone="Pacific/Honolulu")
    graph.invoke({"messages": [("user", "aloha")]}, CONFIG, context=there)
    place.clock.now += timedelta(hours=8)
    with pytest.raises(LimitReachedError) as refused:
        graph.invoke({"messages": [("user", "aloha")]}, CONFIG)
    assert int(refused.value.retry_after) <= 6 * 3_600
    place.clock.now += timedelta(hours=6)
    graph.invoke({"messages": [("user", "aloha")]}, CONFIG)


@pytest.mark.slow
def test_processes_and_threads_share_the_count_of_a_user(
    tmp_path: Path, server: OpenAIServer
) -> None:
    place = Place(tmp_path, server, user=200)
    ann, bob = TurnOptions(user_id="ann"), TurnOptions(user_id="bob")
    said: Any = {"messages": [("user", "你好")]}
    for name in ("a", "b"):
        place.open().invoke(said, thread(name), context=ann)
    with pytest.raises(LimitReachedError, match="this user"):
        place.open().invoke(said, thread("c"), context=ann)
    place.open().invoke(said, thread("d"), context=bob)


@pytest.mark.slow
def test_an_account_has_a_limit_of_its_own(tmp_path: Path, server: OpenAIServer) -> None:
    graph = Place(tmp_path, server, accounts={"small": 100}, account=1_000_000).open()
    said: Any = {"messages": [("user", "你好")]}
    graph.invoke(said, thread("a"), context=TurnOptions(account="small"))
    with pytest.raises(LimitReachedError, match="this account"):
        graph.invoke(said, thread("b"), context=TurnOptions(account="small"))
    with pytest.raises(LimitReachedError, match="this account"):
        graph.invoke(said, thread("a"))  # the thread keeps its account
    graph.invoke(said, thread("c"), context=TurnOptions(account="large"))


@pytest.mark.slow
def test_a_process_counts_its_own(tmp_path: Path, server: OpenAIServer) -> None:
    place = Place(tmp_path, server, process=100)
    graph = place.open()
    tell(graph, thread("a"), "你好")
    assert find_deps(graph).spending.list_used() == {"process": 1.0}
    with pytest.raises(LimitReachedError, match="this process"):
        tell(graph, thread("b"), "你好")
    tell(place.open(), thread("c"), "你好")


@pytest.mark.slow
def test_money_goes_by_prices_and_every_model_needs_one(
    tmp_path: Path, server: OpenAIServer
) -> None:
    place = Place(tmp_path, server, unit="money", session=1)
    with pytest.raises(ConfigurationError, match="strong has no price"):
        place.open(prices={"cheap": (0, 0, 0)})
    graph = place.open(prices={"cheap": (0, 0, 0), "strong": (10_000, 0, 10_000)})
    tell(graph, CONFIG, "你好")
    assert newest(graph).limits == {"session": 1.0}
    with pytest.raises(LimitReachedError, match=r"used up \(1 money\)"):
        tell(graph, CONFIG, "在吗？")


@pytest.mark.slow
def test_what_nobody_waits_for_is_done_another_day(tmp_path: Path, server: OpenAIServer) -> None:
    place = Place(tmp_path, server, session=200, rest_at=0.01)
    graph = place.fill()
    tell(graph, CONFIG, "你好")
    before = asked(server)
    with pytest.raises(LimitReachedError):
        review_session(graph, CONFIG)
    deps = find_deps(graph)
    with pytest.raises(LimitReachedError):
        reflect_once(
            "s",
            force=True,
            checkpointer=place.saver,
            storage=deps.workspaces.choose_storage(place.store),
            store=place.store,
            roles=deps.roles,
            clock=place.clock,
        )
    assert asked(server) == before
    assert ReflectionStore(place.store).progress("s").marks == ()


class BrokenStore(InMemoryStore):
    """A store that cannot be reached for what is counted."""

    def batch(self, ops: Any) -> Any:
        ops = list(ops)
        if any("%spent" in str(op) for op in ops):
            raise OSError("unreachable")
        return super().batch(ops)


def test_a_store_that_fails_costs_the_count_of_others_and_no_turn(
    tmp_path: Path, server: OpenAIServer
) -> None:
    place = Place(tmp_path, server, session=100)
    place.store = BrokenStore()
    graph = place.open()
    tell(graph, CONFIG, "你好")
    with pytest.raises(LimitReachedError):
        tell(graph, CONFIG, "在吗？")


def test_an_agents_model_needs_a_price_too(tmp_path: Path, server: OpenAIServer) -> None:
    place = Place(tmp_path, server, unit="money", session=1)
    settings = Settings.model_validate(place.settings | {"prices": {"cheap": (1, 1, 1)}})
    memory = TopicMiddleware(settings=settings, cheap_model="openai:cheap", clock=Clock())
    said: Any = {"messages": [("user", "你好")]}
    with pytest.raises(ConfigurationError, match="has no price"):
        open_agent(ScriptedModel(), memory).invoke(said, CONFIG)


@pytest.mark.slow
def test_an_agent_is_refused_too(tmp_path: Path, server: OpenAIServer) -> None:
    settings = Settings.model_validate(Place(tmp_path, server, session=100).settings)
    memory = TopicMiddleware(settings=settings, cheap_model="openai:cheap", clock=Clock())
    agent = open_agent(ScriptedModel(), memory)
    said: Any = {"messages": [("user", "你好")]}
    agent.invoke(said, CONFIG)
    while find_deps(agent).spending.list_used("s")["session"] < 1:
        agent.invoke(said, CONFIG)
    with pytest.raises(LimitReachedError):
        agent.invoke(said, CONFIG)


@pytest.mark.slow
def test_what_was_counted_goes_with_the_session_and_the_user(
    tmp_path: Path, server: OpenAIServer
) -> None:
    place = Place(tmp_path, server, session=1_000, user=1_000)
    graph = place.open()
    for name in ("a", "b"):
        context = TurnOptions(user_id="ann")
        graph.invoke({"messages": [("user", "你好")]}, thread(name), context=context)
    assert len(place.store.search(("topicloom", "%spent"))) == 3
    delete_session(graph, "a")
    assert len(place.store.search(("topicloom", "%spent"))) == 2
    PersonMemory(graph, "ann").delete()
    assert place.store.search(("topicloom", "%spent")) == []


@pytest.mark.slow
async def test_so_it_is_on_the_event_loop(tmp_path: Path, server: OpenAIServer) -> None:
    graph = Place(tmp_path, server, session=100).open()
    said: Any = {"messages": [("user", "你好")]}
    await graph.ainvoke(said, CONFIG)
    with pytest.raises(LimitReachedError):
        await graph.ainvoke(said, CONFIG)


@pytest.mark.slow
def test_without_limits_nothing_is_kept(tmp_path: Path, server: OpenAIServer) -> None:
    place = Place(tmp_path, server)
    graph = place.open()
    tell(graph, CONFIG, "你好")
    assert newest(graph).limits == {}
    assert place.store.search(("topicloom", "%spent")) == []
    assert all("reader" not in system_text(r) for r in server.requests)
