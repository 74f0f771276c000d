"""Reflecting once, beside code without an event loop, and forgetting what was purged."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from openai_behaviours import Reply
from openai_server import OpenAIServer
from sessions import open_graph, record, tell, thread

from topicloom import (
    REFLECTOR,
    Answer,
    Claim,
    Fact,
    FactChanges,
    FileStorage,
    Memory,
    ReflectionPolicy,
    ReflectionResult,
    ReflectionStore,
    ReflectRequest,
    SessionBusyError,
    Settings,
    TurnOptions,
    UnusableAnswerError,
    delete_session,
    open_roles,
    reflect_beside,
    reflect_once,
    run_in_thread,
)
from topicloom.hosting import Graph
from topicloom.reflection.reflector import EmbeddedReflector
from topicloom.testing import Clock, FailingRole, fake_roles

POLICY = ReflectionPolicy()


class Place:
    """Everything that reflection needs of a graph, in memory but for the storage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saver, self.store, self.clock = InMemorySaver(), InMemoryStore(), Clock()
        self.roles = fake_roles()
        self.kept = ReflectionStore(self.store, pause=0.001)

    def graph(self, store: InMemoryStore | None = None) -> Graph:
        options: dict[str, Any] = {"checkpointer": self.saver, "clock": self.clock, "store": store}
        return open_graph(self.folder, self.roles, **options)

    def options(self, **changes: Any) -> Any:
        return {
            "checkpointer": self.saver,
            "storage": FileStorage(self.folder, fsync=False),
            "store": self.store,
            "roles": self.roles,
            "clock": self.clock,
            **changes,
        }

    def once(self, *, force: bool = False, **changes: Any) -> ReflectionResult:
        return reflect_once("s", force=force, **self.options(**changes))

    def facts(self, session: str = "s") -> list[str]:
        return [fact.text for fact in self.kept.facts(session).values()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestOnce:
    def test_what_is_not_due_is_left_alone_unless_it_is_forced(self, place: Place) -> None:
        tell(place.graph(), thread(), "I live in Leeds.")
        left = place.once()
        assert (left.state.pending, left.reason, left.reflections) == (1, None, ())
        assert place.facts() == []
        forced = place.once(force=True)
        assert [r.read for r in forced.reflections] == [2]
        assert place.facts() == ["I live in Leeds."]
        again = place.once(force=True)
        assert (again.state.pending, again.reflections) == (0, ())

    @pytest.mark.slow
    def test_what_is_due_is_read_to_its_end(self, place: Place) -> None:
        tell(place.graph(), thread(), *(f"I have {n} cats." for n in range(2, 9)))
        done = place.once(policy=ReflectionPolicy(messages=4))
        assert done.reason == "count"
        assert [r.upto for r in done.reflections] == [4, 8, 12, 14]
        assert place.kept.leases("s", place.clock().timestamp()) == {}

    def test_facts_of_an_import_say_so_and_wait_for_a_person(self, place: Place) -> None:
        graph = place.graph()
        texts = {"a": "I live in Leeds.", "b": "I live in Rome.", "c": "I have two cats."}
        names = {"a": "Ann", "b": "Otto", "c": "Ann"}
        graph.invoke(
            {
                "messages": [
                    HumanMessage(
                        texts[i],
                        name=name,
                        additional_kwargs={"origin": "whatsapp", "of_another": name == "Otto"},
                    )
                    for i, name in names.items()
                ]
            },
            thread(),
            context=TurnOptions(answer=False),
        )
        place.clock.now += timedelta(seconds=POLICY.idle_seconds)
        place.once(policy=ReflectionPolicy(hold_imported=True))
        memory = Memory.of(place.graph(place.store), thread())
        facts = memory.facts()
        assert [(f.text, f.origin, f.held) for f in facts.values()] == [
            ("Ann: I live in Leeds.", "whatsapp", True),
            ("Ann: I have two cats.", "whatsapp", True),
        ]
        assert not memory.correct_fact(next(iter(facts))).held

    def test_silence_makes_it_due(self, place: Place) -> None:
        tell(place.graph(), thread(), "I live in Leeds.")
        place.clock.now += timedelta(seconds=POLICY.idle_seconds)
        assert place.once().reason == "silence"
        assert place.facts() == ["I live in Leeds."]

    def test_only_one_at_a_time(self, place: Place) -> None:
        tell(place.graph(), thread(), "I live in Leeds.")
        since = place.clock().timestamp()
        with (
            place.kept.hold_lease("s", since, POLICY),
            pytest.raises(SessionBusyError, match="'s' is being reflected upon"),
        ):
            place.once(force=True)
        assert place.once(force=True).reflections

    @pytest.mark.slow
    def test_no_other_one_begins_while_it_goes_on(self, place: Place) -> None:
        tell(place.graph(), thread(), *(f"I have {n} cats." for n in range(2, 9)))
        free = list[bool]()

        class Slow(EmbeddedReflector):
            def call(self, request: ReflectRequest) -> Answer[tuple[Claim, ...]]:
                place.clock.now += timedelta(seconds=0.6 * POLICY.lease_seconds)
                now = place.clock().timestamp()
                free.append(place.kept.acquire_lease("s", "another", now, POLICY))
                return super().call(request)

        roles = place.roles.replace(REFLECTOR, Slow(), stand_in=Slow())
        policy = ReflectionPolicy(messages=4)
        assert len(place.once(roles=roles, policy=policy, force=True).reflections) == 4
        assert free == [False] * 4

    def test_a_part_without_words_does_not_end_it(self, place: Place) -> None:
        graph = place.graph()
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        record(graph, thread(), HumanMessage([image]), HumanMessage("I live in Leeds."))
        done = place.once(force=True, policy=ReflectionPolicy(messages=1, idle_seconds=0.001))
        assert [r.upto for r in done.reflections] == [1, 2]
        assert place.facts() == ["I live in Leeds."]

    def test_a_failure_is_raised_and_the_lease_given_back(self, place: Place) -> None:
        tell(place.graph(), thread(), "I live in Leeds.")
        broken: Any = FailingRole()
        roles = place.roles.replace(REFLECTOR, broken, stand_in=broken)
        with pytest.raises(UnusableAnswerError, match="nobody could reflect upon 's'"):
            place.once(force=True, roles=roles)
        assert place.once(force=True).reflections

    def test_a_session_in_which_nobody_spoke_has_no_facts(self, place: Place) -> None:
        assert place.once(force=True).reflections == ()


class TestBackground:
    def test_a_scheduler_runs_in_a_thread_of_its_own(self, place: Place) -> None:
        graph = place.graph()
        scheduler = reflect_beside(**place.options(policy=ReflectionPolicy(turns=1)))
        with run_in_thread(scheduler):
            tell(graph, thread(), "I live in Leeds.")
            scheduler.notify("s")
        assert place.facts() == ["I live in Leeds."]
        assert not scheduler.failures
        assert "topicloom-reflection" not in [t.name for t in threading.enumerate()]

    async def test_it_looks_after_the_sessions_that_it_is_given(self, place: Place) -> None:
        graph = place.graph()
        for name in ("ann", "bob"):
            tell(graph, thread(name), "I live in Leeds.")
        options = place.options(policy=ReflectionPolicy(turns=1))
        async with reflect_beside(only=["ann"], **options) as scheduler:
            await scheduler.tick()
            await scheduler.wait_idle()
        assert (len(place.facts("ann")), place.facts("bob")) == (1, [])

    def test_an_error_beside_it_ends_it(self, place: Place) -> None:
        scheduler = reflect_beside(**place.options())
        with pytest.raises(KeyboardInterrupt), run_in_thread(scheduler):
            raise KeyboardInterrupt
        assert "topicloom-reflection" not in [t.name for t in threading.enumerate()]


class TestForgetting:
    def test_a_session_that_is_deleted_meanwhile_does_not_come_back(self, place: Place) -> None:
        graph = open_graph(
            place.folder, checkpointer=place.saver, clock=place.clock, store=place.store
        )
        tell(graph, thread(), "I live in Leeds.")

        class Deleting(EmbeddedReflector):
            def call(self, request: ReflectRequest) -> Answer[tuple[Claim, ...]]:
                delete_session(graph, "s")
                return super().call(request)

        roles = place.roles.replace(REFLECTOR, Deleting(), stand_in=Deleting())
        place.once(force=True, roles=roles)
        assert place.store.search(("topicloom",)) == []

    NUTS = Fact("Allergic to nuts", ("m1", "m7"), "2026-03-01T09:00:00+00:00")
    TEA = Fact("Likes tea", ("m3",), "2026-03-02T09:00:00+00:00")
    COFFEE = Fact("Likes coffee", ("m5",), "2026-03-03T09:00:00+00:00", (TEA.key, NUTS.key))

    def test_facts_that_rest_on_any_of_the_messages_go(self, place: Place) -> None:
        place.kept.change_facts("s", FactChanges((self.NUTS, self.TEA)))
        place.kept.change_facts("other", FactChanges((self.NUTS,)))
        assert place.kept.find_resting_on("s", ["m7", "m8"]) == {self.NUTS.key: self.NUTS}
        assert place.kept.forget("s", ["m7", "m8"]) == {self.NUTS.key: self.NUTS}
        assert place.facts() == ["Likes tea"]
        assert place.facts("other") == ["Allergic to nuts"]
        assert place.kept.forget("s", ["m7", "m8"]) == {}

    def test_no_trace_of_them_stays_in_others(self, place: Place) -> None:
        place.kept.change_facts("s", FactChanges((self.NUTS, self.COFFEE)))
        place.kept.forget("s", ["m1"])
        (coffee,) = place.kept.facts("s").values()
        assert coffee == replace(self.COFFEE, replaces=(self.TEA.key,))


@pytest.mark.slow
def test_a_model_reflects_beside_an_applications_own_graph(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """By public names alone: the options of the graph give its roles."""
    place = Place(tmp_path)
    tell(place.graph(), thread(), "Since May I am in Leeds, for good.")
    fact = '<fact msg_id="m1">The user is in Leeds for good.</fact>'
    openai_server.then(Reply(f"<reflection>{fact}</reflection>"))
    settings = Settings(base_url=openai_server.base_url, api_key="test")
    roles = open_roles(cheap_model="openai:gpt-5-nano", settings=settings)
    done = reflect_once("s", force=True, **place.options(roles=roles))
    (reflection,) = done.reflections
    assert [f.text for f in reflection.facts] == ["The user is in Leeds for good."]
    assert [c.model for c in reflection.calls] == ["gpt-5-nano"]
