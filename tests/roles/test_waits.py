"""The roles of a turn keep the user waiting for one deadline; a role that was late rests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from slow_roles import SlowRole

from topicloom import Answer, LocalRole
from topicloom.background import submit_daemon
from topicloom.effects import arun_step, run_step
from topicloom.roles.calls import Stepwise, ask_all, ask_role, read_late
from topicloom.roles.waits import LONGEST_REST, REST, TurnWaits, Waits
from topicloom.testing import FixedRole


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Player(LocalRole[Any, Any]):
    """A role that a model plays."""

    model: str = "m"
    deadline: float | None = 60.0


@dataclass
class Session:
    """The waits of a session, whose roles answer after some seconds, or never."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.waits = TurnWaits(60.0, self.clock)
        self.waits.begin()

    def ask(self, name: str, takes: float | None, role: Any = None) -> str:
        """Ask a role that takes some seconds, None if it never answers; why it was not asked."""
        role = role or Player()
        if why := self.waits.refuse(name, role):
            return why
        allowed = self.waits.allow(role) or 0.0
        with self.waits.waiting():
            took = min(allowed, takes if takes is not None else 1e9)
            self.clock.now += took
        if takes is None or takes > allowed:
            assert self.waits.note_failure(name, role, took, allowed)
        else:
            self.waits.note_answer(name, role)
        return ""

    def turns(self, count: int) -> None:
        for _ in range(count):
            self.waits.begin()


class TestOneDeadline:
    def test_roles_share_it(self) -> None:
        session = Session()
        assert session.ask("splitter", 40) == ""
        assert session.waits.allow(Player()) == 20
        assert session.ask("brief", 15) == ""
        assert session.ask("reader", 30) == ""
        assert session.clock.now == 60
        assert session.ask("router", 1) == "the turn has waited 60 s for other roles"

    def test_the_next_turn_has_its_own(self) -> None:
        session = Session()
        session.ask("splitter", 59)
        session.turns(1)
        assert session.waits.allow(Player()) == 60

    def test_calls_that_go_on_at_once_count_once(self) -> None:
        session = Session()
        with session.waits.waiting(), session.waits.waiting():
            session.clock.now += 10
            assert session.waits.allow(Player()) == 50
        assert session.waits.allow(Player()) == 50

    def test_a_role_with_less_time_of_its_own_keeps_it(self) -> None:
        assert Session().waits.allow(Player(deadline=5)) == 5

    def test_nobody_waits_for_a_turn_that_only_records(self) -> None:
        session = Session()
        session.waits.begin(waited=False)
        for _ in range(10):
            assert session.ask("splitter", 50) == ""

    def test_what_computes_is_always_asked(self) -> None:
        session = Session()
        session.ask("splitter", None)
        assert session.waits.refuse("splitter", FixedRole(1)) == ""
        assert session.waits.allow(FixedRole(1)) is None


class TestRest:
    def test_who_was_late_rests(self) -> None:
        session = Session()
        assert session.ask("reader", None) == ""
        assert session.ask("reader", 1) == "it was late in this turn"
        for left in (*range(REST - 1, 1, -1), 1):
            session.turns(1)
            plural = "s" if left > 1 else ""
            assert session.ask("reader", 1) == f"it was late: it rests for {left} more turn{plural}"
        session.turns(1)
        assert session.ask("reader", 1) == "it was late: it rests for this turn"
        session.turns(1)
        assert session.ask("reader", 1) == ""

    def test_the_second_time_it_rests_longer(self) -> None:
        session, rests = Session(), list[int]()
        for _ in range(6):
            assert session.ask("reader", None) == ""
            count = 0
            session.turns(1)
            while session.waits.refuse("reader", Player()):
                session.turns(1)
                count += 1
            rests.append(count)
        assert rests == [REST, 2 * REST, 4 * REST, LONGEST_REST, LONGEST_REST, LONGEST_REST]
        assert session.ask("reader", 1) == ""
        session.turns(1)
        session.ask("reader", None)
        session.turns(REST + 1)
        assert session.ask("reader", 1) == ""

    def test_roles_of_the_same_model_that_never_answered_rest_too(self) -> None:
        """Or each of them would cost the user a deadline, one turn after the other."""
        session = Session()
        session.ask("splitter", None)
        session.turns(1)
        assert session.ask("reader", 1).startswith("m was late in another role: it rests for")
        assert session.ask("reader", 1, Player(model="quick")) == ""

    def test_who_has_answered_goes_on(self) -> None:
        session = Session()
        session.ask("reader", 1)
        session.ask("splitter", None)
        assert session.ask("reader", 1) == "the turn has waited 60 s for other roles"
        session.turns(1)
        assert session.ask("reader", 1) == ""

    def test_who_had_little_time_left_does_not_rest_for_it(self) -> None:
        session = Session()
        session.ask("reader", 10)
        session.turns(1)
        session.ask("splitter", 55)
        assert session.ask("reader", 10) == ""
        assert session.ask("reader", 1) == "it was late in this turn"
        session.turns(1)
        assert session.ask("reader", 10) == ""

    def test_who_had_no_time_at_all_does_not_rest_for_it(self) -> None:
        """Its model may be a quick one, which nobody has asked for anything yet."""
        session, quick = Session(), Player(model="quick")
        session.ask("splitter", None)
        assert session.waits.note_failure("brief", quick, took=0.01, allowed=0.0)
        assert session.waits.refuse("brief", quick, waits=False) == "it was late in this turn"
        session.turns(1)
        assert session.ask("brief", 1, quick) == session.ask("reader", 1, quick) == ""

    def test_it_rests_if_it_answers_never(self) -> None:
        session, other = Session(), Player(model="other")
        session.ask("splitter", None)
        session.waits.note_failure("brief", other, took=0.01, allowed=0.0)
        session.waits.note_end("brief", other, took=60, failed=True)
        session.turns(1)
        assert session.ask("brief", 1, other).startswith("it was late: it rests")

    def test_an_answer_by_its_own_deadline_ends_the_rest(self) -> None:
        session, other = Session(), Player(model="other")
        session.ask("splitter", 30)
        assert session.ask("brief", None, other) == ""
        session.waits.note_end("brief", other, took=40, failed=False)
        session.turns(1)
        assert session.ask("brief", 1, other) == session.ask("reader", 1, other) == ""

    def test_a_failure_at_once_is_not_being_late(self) -> None:
        session = Session()
        assert not session.waits.note_failure("reader", Player(), took=0.2, allowed=60)
        assert session.ask("reader", 1) == ""

    def test_sessions_rest_apart(self) -> None:
        waits = Waits(60.0)
        one = waits.get("a")
        one.begin()
        one.note_failure("reader", Player(), took=60, allowed=60)
        assert waits.get("a").refuse("reader", Player())
        assert waits.get("b").refuse("reader", Player()) == ""


class TestCalls:
    def test_a_call_that_is_not_made_says_so(self) -> None:
        waits = TurnWaits(0.1)
        waits.begin()
        slow = SlowRole(seconds=0.2, deadline=0.1)
        _, late = run_step(ask_role("reader", slow, "?", "t1", waits=waits))
        assert (late.failure, late.skipped) == ("no answer within 0.1 s", False)
        value, skipped = run_step(ask_role("reader", slow, "?", "t2", waits=waits))
        assert (value, skipped.skipped, skipped.topic) == (None, True, "t2")
        assert skipped.failure == "it was late in this turn"

    async def test_so_it_is_on_the_event_loop(self) -> None:
        waits = TurnWaits(0.1, clock=lambda: 0.0)
        waits.begin()
        slow = SlowRole(seconds=0.2, deadline=60)
        asked = await arun_step(ask_all("reader", slow, ["?", "?"], ["t1", "t2"], waits=waits))
        assert [call.failure for _, call in asked] == ["no answer within 0.1 s"] * 2
        _, skipped = await arun_step(ask_role("reader", slow, "?", waits=waits))
        assert skipped.skipped

    def test_a_request_is_ended_when_the_turn_goes_on(self) -> None:
        """A local server would go on with it, and be slower for what comes next."""
        seen = list[float | None]()

        class Timed(Stepwise[Any, Any]):
            model, deadline = "m", 60.0

            def call(self, request: Any) -> Answer[Any]:
                seen.append(self.deadline)
                return Answer(None)

        waits = TurnWaits(5.0)
        waits.begin()
        run_step(ask_role("reader", Timed(), "?", waits=waits))
        assert seen[0] is not None
        assert seen[0] <= 5.0

    @pytest.mark.parametrize("mode", ["sync", "async"])
    async def test_a_late_call_goes_on_where_somebody_takes_it(self, mode: str) -> None:
        waits, late = TurnWaits(0.05), list[Any]()
        waits.begin()
        slow = SlowRole(seconds=0.2, deadline=60)
        step = ask_role("reader", slow, "?", waits=waits, late=late.append)
        await (arun_step(step) if mode == "async" else submit(step))
        assert isinstance(late[0].result(5), Answer)
        # No reader answers with None.
        assert read_late("reader", late[0]) is None


async def submit(step: Any) -> Any:
    return submit_daemon(lambda: run_step(step)).result(5)
