"""A reflection of a real session: what it reads, what it keeps, and doing it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from sessions import chatter, open_graph, past, record, tell, thread

from topicloom import (
    REFLECTOR,
    Answer,
    Claim,
    FileStorage,
    LocalRole,
    ReflectionPolicy,
    ReflectionStore,
    ReflectRequest,
    ReviewReport,
    TurnOptions,
    UnusableAnswerError,
    areview_session,
    get_session,
    reflect_beside,
)
from topicloom.hosting import Graph, get_text
from topicloom.reflection.due import find_due_reason
from topicloom.reflection.persons import find_facts
from topicloom.reflection.reflect import ReflectionRunner
from topicloom.reflection.reflector import EmbeddedReflector
from topicloom.reflection.sessions import StoredSessionSource
from topicloom.testing import Clock, FailingRole, ScriptedResponder, fake_roles

POLICY = ReflectionPolicy()


@dataclass
class Scripted(LocalRole[ReflectRequest, tuple[Claim, ...]]):
    """A reflector that says what it is told to."""

    claims: Callable[[ReflectRequest], list[Claim]] = lambda request: []
    requests: list[ReflectRequest] = field(default_factory=list)

    def call(self, request: ReflectRequest) -> Answer[tuple[Claim, ...]]:
        self.requests.append(request)
        return Answer(tuple(self.claims(request)))


@dataclass
class World:
    """A graph with everything around it."""

    folder: Path
    checkpointer: InMemorySaver = field(default_factory=InMemorySaver)
    store: InMemoryStore = field(default_factory=InMemoryStore)
    clock: Clock = field(default_factory=Clock)
    responder: ScriptedResponder = field(default_factory=ScriptedResponder)

    def graph(self, **settings: Any) -> Graph:
        return open_graph(
            self.folder,
            fake_roles(self.responder),
            checkpointer=self.checkpointer,
            clock=self.clock,
            **settings,
        )

    def now(self) -> float:
        return self.clock().timestamp()

    def sessions(self, policy: ReflectionPolicy = POLICY) -> StoredSessionSource:
        """As a process finds them that has just begun."""
        return StoredSessionSource(
            checkpointer=self.checkpointer,
            storage=FileStorage(self.folder, fsync=False),
            store=ReflectionStore(self.store),
            policy=policy,
            clock=self.now,
        )

    def reflecting(
        self,
        reflector: Any = None,
        external: Callable[[str], object] | None = None,
        stand_in: Any = None,
        policy: ReflectionPolicy = POLICY,
    ) -> ReflectionRunner:
        roles = fake_roles().replace(
            REFLECTOR,
            reflector or EmbeddedReflector(),
            stand_in=stand_in or EmbeddedReflector(),
        )
        return ReflectionRunner(self.sessions(policy), roles, external)

    def facts(self, thread: str = "s") -> dict[str, tuple[str, ...]]:
        """The facts that hold, each with its messages."""
        session, store = self.sessions().open(thread)
        found = find_facts(ReflectionStore(self.store), store, session, self.now())
        return {fact.text: fact.messages for fact in found.values()}

    def items(self) -> list[tuple[Any, ...]]:
        """Everything in the store but leases, with the time of its last writing."""
        found = self.store.search(("topicloom",), limit=1_000)
        return sorted((i.namespace, i.key, str(i.value), i.updated_at) for i in found)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_facts_are_kept_with_their_messages(world: World) -> None:
    tell(
        world.graph(), thread(), "I'm allergic to nuts. Where do I eat?", "Thanks!", "我住在杭州。"
    )
    found = world.reflecting().run("s")
    assert world.facts() == {"I'm allergic to nuts.": ("m1",), "我住在杭州。": ("m5",)}
    session, store = world.sessions().open("s")
    refs = store.transcript_refs(session)
    facts = ReflectionStore(world.store).facts("s").values()
    assert [[one.ref for one in f.said] for f in facts] == [[refs[0]], [refs[4]]]
    assert (found.upto, found.read, found.source, found.dropped) == (6, 6, "native", {})


def test_twice_writes_nothing_twice(world: World) -> None:
    graph = world.graph()
    tell(graph, thread(), "I'm allergic to nuts.")
    world.reflecting().run("s")
    before = world.items()
    again = world.reflecting().run("s")
    assert world.items() == before
    assert (again.upto, again.read, again.facts) == (2, 0, ())
    tell(graph, thread(), "I live in Leeds.")
    assert [f.text for f in world.reflecting().run("s").facts] == ["I live in Leeds."]


def test_a_crash_before_the_mark_costs_nothing(world: World) -> None:
    tell(world.graph(), thread(), "I live in Leeds.", "I live in Oslo now.", "I have two kids.")
    world.reflecting().run("s")
    facts = world.facts()
    assert facts == {"I live in Oslo now.": ("m3",), "I have two kids.": ("m5",)}
    world.store.delete(("topicloom", "%reflected"), "s")
    again = world.reflecting().run("s")
    assert again.dropped == {}
    assert world.facts() == facts


def test_a_newer_fact_takes_the_place_of_the_older_one(world: World) -> None:
    graph = world.graph()
    tell(graph, thread(), "I work at the mill.")
    world.reflecting().run("s")
    tell(graph, thread(), "The mill is closed, I drive a bus.")

    def said(request: ReflectRequest) -> list[Claim]:
        return [Claim("The user drives a bus", ("m3",), (request.facts[0].key,))]

    found = world.reflecting(Scripted(said)).run("s")
    assert world.facts() == {"The user drives a bus": ("m3",)}
    assert len(found.retired) == 1


def test_what_does_not_rest_on_the_users_words_is_dropped(world: World) -> None:
    world.responder.script = ["You live in Rome, don't you?"]
    tell(world.graph(), thread(), "I want the best pasta. Where is it?")
    claims = [
        Claim("The user lives in Rome", ("m2",)),
        Claim("The user lives in Rome", ("m1",)),
        Claim("The user asks for pasta", ("m7",)),
        Claim("The user wants the best pasta", ("m1",)),
    ]
    found = world.reflecting(Scripted(lambda request: claims)).run("s")
    assert list(world.facts()) == ["The user wants the best pasta"]
    assert sum(found.dropped.values()) == 3


@pytest.mark.slow
def test_only_what_was_really_said_is_read(world: World) -> None:
    """Recalled text stands in the prompts of many turns; it is never in the records."""
    graph, config = world.graph(), thread()
    record(graph, config, *past("茶", "雨", rounds=8))
    tell(graph, config, chatter("茶", 90), chatter("雨", 91), keep=2)
    store = FileStorage(world.folder).open("s")
    session = get_session(graph, config)
    assert session.ledger is not None, "something was recalled"
    assert store.refs("ledger", session.ledger)
    reflector = Scripted()
    world.reflecting(reflector).run("s")
    (request,) = reflector.requests
    said = [get_text(m) for m in past("茶", "雨", rounds=8)]
    said += [chatter("茶", 90), "All right, noted.", chatter("雨", 91), "All right, noted."]
    assert [r.text for r in request.messages] == said
    assert {r.role for r in request.messages} == {"user", "assistant"}


@pytest.mark.slow
def test_what_is_due_is_read_from_the_checkpoint(world: World) -> None:
    graph, config = world.graph(), thread()
    tell(graph, config, *(f"Message {n}." for n in range(5)))
    standing = world.sessions().get_state("s")
    assert (standing.pending, find_due_reason(standing, world.now(), POLICY)) == (5, None)
    assert find_due_reason(standing, world.now() + 600, POLICY) == "silence"
    tell(graph, config, "One more.")
    assert find_due_reason(world.sessions().get_state("s"), world.now(), POLICY) == "count"
    world.reflecting().run("s")
    assert world.sessions().get_state("s").pending == 0
    assert find_due_reason(world.sessions().get_state("s"), world.now() + 1e6, POLICY) is None


def test_a_round_that_is_being_answered_is_not_due(world: World) -> None:
    graph, policy = world.graph(), ReflectionPolicy(turns=1)
    said = {"messages": [HumanMessage("I live in Leeds.")]}
    graph.invoke(said, thread(), interrupt_before=["main_generate"])
    asked = world.sessions().get_state("s")
    assert (asked.pending, find_due_reason(asked, world.now(), policy)) == (1, None)
    assert find_due_reason(asked, world.now() + policy.idle_seconds, policy) == "silence"
    graph.invoke(None, thread())
    assert find_due_reason(world.sessions().get_state("s"), world.now(), policy) == "count"


def test_what_was_taken_out_of_view_is_not_due(world: World) -> None:
    graph = world.graph()
    tell(graph, thread(), "I live in Leeds.")
    before = graph.get_state(thread()).values["messages"]
    tell(graph, thread(), "My name is Ann.")
    for removed, left in ((before[:1], 1), (before[1:], 1), (None, 0)):
        gone = graph.get_state(thread()).values["messages"] if removed is None else removed
        removal = [RemoveMessage(id=m.id) for m in gone]
        graph.invoke({"messages": removal}, thread(), context=TurnOptions(answer=False))
        assert world.sessions().get_state("s").pending == left
    world.clock.now += timedelta(seconds=POLICY.idle_seconds)
    assert find_due_reason(world.sessions().get_state("s"), world.now(), POLICY) is None


def test_a_standing_follows_what_is_said(world: World) -> None:
    graph, sessions = world.graph(), world.sessions()
    for rounds in (1, 2, 3):
        tell(graph, thread("a"), "Hello.")
        assert sessions.list_sessions() == ["a"]
        assert sessions.get_state("a").pending == rounds


def test_a_fork_goes_on_from_its_own_point(world: World) -> None:
    graph, config = world.graph(), thread()
    tell(graph, config, "I live in Leeds.", "Fine.")
    world.reflecting().run("s")
    tell(graph, config, "I have a dog.")
    world.reflecting().run("s")
    old = next(
        s
        for s in graph.get_state_history(config)
        if (s.values.get("session") or {}).get("turn") == 2
    )
    fork: RunnableConfig = old.config
    graph.invoke({"messages": [HumanMessage("I have two cats.")]}, fork)
    reflector = Scripted()
    assert world.sessions().get_state("s").pending == 1
    world.reflecting(reflector).run("s")
    assert [r.text for r in reflector.requests[0].messages if r.role == "user"] == [
        "I have two cats."
    ]


def test_external_records_are_used_if_they_are_well_formed(world: World) -> None:
    tell(world.graph(), thread(), "I live in Leeds.")
    row = {"role": "user", "sender_id": "Yue", "timestamp": 1_772_000_000, "id": "qq-1"}
    rows = [row | {"content": "我对花生过敏。", "is_processed": True}]
    found = world.reflecting(external=lambda session: rows).run("s")
    assert found.source == "external"
    assert world.facts() == {"Yue: 我对花生过敏。": ("qq-1",)}
    tell(world.graph(), thread(), "I have two kids.")
    found = world.reflecting(external=lambda session: [*rows, {"role": "user"}]).run("s")
    assert found.source == "native"
    assert found.reports[0].startswith("chat record 2: ")
    assert "I have two kids." in world.facts()


def test_a_reflector_that_fails_has_a_stand_in(world: World) -> None:
    tell(world.graph(), thread(), "I live in Leeds.")
    found = world.reflecting(FailingRole()).run("s")
    assert list(world.facts()) == ["I live in Leeds."]
    assert [c.failure is None for c in found.calls if c.role == "reflector"] == [False, True]


def test_if_nobody_can_nothing_is_written(world: World) -> None:
    tell(world.graph(), thread(), "I live in Leeds.")
    with pytest.raises(UnusableAnswerError, match="out of order"):
        world.reflecting(FailingRole(), stand_in=FailingRole()).run("s")
    assert world.items() == []


@pytest.mark.slow
def test_a_long_history_is_read_in_parts(world: World) -> None:
    record(world.graph(), thread(), *past("tea", rounds=10))
    policy = POLICY.model_copy(update={"messages": 8})
    reflector, reflecting = Scripted(), world.reflecting(policy=policy)
    reflecting = world.reflecting(reflector, policy=policy)
    assert [reflecting.run("s").upto for _ in range(4)] == [8, 16, 20, 20]
    read = [r.seq for request in reflector.requests for r in request.messages]
    assert read == list(range(1, 21))


def test_sessions_without_a_turn_are_no_matter(world: World) -> None:
    FileStorage(world.folder).open("empty").append("transcript", None, [{"text": "x"}])
    assert world.sessions().get_state("empty").pending == 0
    assert world.reflecting().run("empty").upto == 0


@pytest.mark.slow
async def test_beside_a_graph(world: World) -> None:
    graph, roles = world.graph(), fake_roles()
    scheduler = reflect_beside(
        checkpointer=world.checkpointer,
        storage=FileStorage(world.folder, fsync=False),
        store=world.store,
        roles=roles,
        clock=world.clock,
    )
    async with scheduler:
        for number in range(6):
            said = HumanMessage("I live in Leeds." if number == 2 else f"Message {number}.")
            await graph.ainvoke({"messages": [said]}, thread())
            scheduler.notify("s")
        while not world.facts():
            await scheduler.tick()
            await scheduler.wait_idle()
    assert not scheduler.failures
    assert world.facts() == {"I live in Leeds.": ("m5",)}


@pytest.mark.slow
async def test_reviews_beside_a_graph(world: World) -> None:
    """Topics that got messages are reviewed, and nothing more until something is said."""
    graph, storage = world.graph(), FileStorage(world.folder, fsync=False)
    record(graph, thread(), *past("茶", "雨"))
    tell(graph, thread(), "Hello", keep=0)
    reviews = list[ReviewReport]()

    async def review(session: str) -> None:
        assert ReflectionStore(world.store).progress(session).marks, "it is reflected upon first"
        reviews.append(await areview_session(graph, thread(session), roles=fake_roles()))

    scheduler = reflect_beside(
        checkpointer=world.checkpointer,
        storage=storage,
        store=world.store,
        roles=fake_roles(),
        review=review,
        policy=ReflectionPolicy(idle_seconds=0.001),
    )
    async with scheduler:
        await scheduler.tick()
        await scheduler.wait_idle()
        assert await scheduler.tick() == 0
    assert not scheduler.failures
    (report,) = reviews
    assert report.reviewed


def test_tool_results_and_calls_are_not_read(world: World) -> None:
    messages = [HumanMessage("I live in Leeds."), AIMessage(""), AIMessage("Noted.")]
    record(world.graph(), thread(), *messages)
    reflector = Scripted()
    world.reflecting(reflector).run("s")
    assert [r.text for r in reflector.requests[0].messages] == ["I live in Leeds.", "Noted."]


def test_requests_say_what_is_known(world: World) -> None:
    graph, reflector = world.graph(), Scripted()
    tell(graph, thread(), "I live in Leeds.")
    world.reflecting().run("s")
    tell(graph, thread(), "Hello.")
    world.reflecting(reflector).run("s")
    (request,) = reflector.requests
    assert [f.text for f in request.facts] == ["I live in Leeds."]
    assert replace(request, messages=()).language == "en"
