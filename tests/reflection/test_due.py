"""When a session is due: counts, silence, marks that get stale, and clocks that are set back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pydantic import ValidationError
from tables import each_row

from topicloom import ReflectionPolicy
from topicloom.hosting import DueState, parse_iso_seconds
from topicloom.reflection.due import (
    ReflectionMark,
    ReflectionProgress,
    find_due_reason,
)

POLICY = ReflectionPolicy()
times = st.floats(-1e12, 1e12)
states = st.builds(
    DueState,
    session=st.just("s"),
    pending=st.integers(-5, 50),
    last_at=st.none() | times,
    progress=st.builds(
        ReflectionProgress, failures=st.integers(0, 2_000), failed_at=st.none() | times
    ),
)


def due_state(pending: int = 0, last_at: float | None = 0.0) -> DueState:
    return DueState("s", pending, last_at)


def test_the_defaults_are_those_of_the_spec() -> None:
    assert (POLICY.turns, POLICY.idle_seconds, POLICY.tick_seconds) == (6, 600, 600)


@each_row(
    ("pending", "silent", "reason"),
    [
        (0, 1e9, None),
        (5, 0, None),
        (6, 0, "count"),
        (7, 1e9, "count"),
        (1, 599, None),
        (1, 600, "silence"),
    ],
)
def test_a_reflection_is_due_by_count_or_by_silence(
    pending: int, silent: float, reason: str | None
) -> None:
    assert find_due_reason(due_state(pending), silent, POLICY) == reason


def test_a_round_without_a_reply_counts_only_in_silence() -> None:
    waiting = replace(due_state(POLICY.turns), waiting=True)
    assert find_due_reason(waiting, 599, POLICY) is None
    assert find_due_reason(waiting, 600, POLICY) == "silence"
    assert find_due_reason(replace(waiting, pending=POLICY.turns + 1), 0, POLICY) == "count"


def test_what_nobody_can_date_counts_as_silent() -> None:
    assert find_due_reason(due_state(1, None), 0, POLICY) == "silence"


@given(states, times)
def test_nothing_pending_is_never_due(before: DueState, now: float) -> None:
    assert find_due_reason(replace(before, pending=min(0, before.pending)), now, POLICY) is None


@given(states, times, st.integers(6, 1_000))
def test_enough_rounds_are_due_whatever_the_clock_says(
    before: DueState, now: float, pending: int
) -> None:
    free = replace(before, pending=pending, progress=ReflectionProgress())
    assert find_due_reason(free, now, POLICY) == "count"


@given(states, times)
def test_silence_needs_something_pending_and_no_more_than_the_count(
    before: DueState, now: float
) -> None:
    if find_due_reason(before, now, POLICY) == "silence":
        assert 0 < before.pending < POLICY.turns


@given(states.filter(lambda s: s.pending > 0), times)
def test_wherever_the_clock_is_set_a_pending_session_becomes_due(
    before: DueState, now: float
) -> None:
    """No time in the future, of a message, a mark or a failure, rounds for ever."""
    longest = max(POLICY.lease_seconds, 64 * POLICY.tick_seconds)
    waits = [now + part * longest for part in (0, 1, 2, 3, 4, 5, 6, 7)]
    assert any(find_due_reason(before, later, POLICY) for later in waits)


def test_failures_wait_longer_and_longer() -> None:
    tick = POLICY.tick_seconds
    state, waited = due_state(6), []
    for _ in range(9):
        state = replace(state, progress=state.progress.fail(1))
        waited.append(next(n for n in range(100) if find_due_reason(state, n * tick, POLICY)))
    assert waited == [1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_after_a_reflection_failures_are_forgiven() -> None:
    mark = ReflectionMark(upto=12, ref="r12")
    failed = ReflectionProgress(reviewed_at=3).fail(0)
    assert failed.reach(mark) == ReflectionProgress(marks=(mark,), reviewed_at=3)
    assert failed.review(5).failures == 0


def test_marks_are_kept_for_some_branches() -> None:
    progress = ReflectionProgress()
    for number in range(1, 30):
        progress = progress.reach(ReflectionMark(upto=number, ref=f"r{number}"))
    progress = progress.reach(ReflectionMark(upto=29, ref="r29"))
    assert [m.upto for m in progress.marks] == list(range(14, 30))


def test_a_fork_goes_on_from_its_own_marks() -> None:
    progress = ReflectionProgress(
        marks=(ReflectionMark(upto=2, ref="a2"), ReflectionMark(upto=4, ref="a4"))
    )
    assert progress.find_reached(["a1", "a2", "a3", "a4", "a5"]) == 4
    assert progress.find_reached(["a1", "a2", "b3", "b4", "b5"]) == 2
    assert progress.find_reached(["a1"]) == 0
    assert ReflectionProgress().find_reached(["a1"]) == 0


@each_row(
    ("time", "seconds"),
    [
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-01T00:01:00", 60.0),
        ("1970-01-02", 86_400.0),
        ("1:56 pm on 8 May, 2023", None),
        ("", None),
        ("0001-01-01T00:00:00+14:00", -62135647200.0),
    ],
)
def test_times_are_read_as_seconds(time: str, seconds: float | None) -> None:
    assert parse_iso_seconds(time) == seconds


@each_row(
    "wrong", [{"turns": 0}, {"idle_seconds": 0}, {"tick_seconds": float("nan")}, {"at_once": 0}]
)
def test_policies_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        ReflectionPolicy.model_validate(wrong)


class OneSession(RuleBasedStateMachine):
    """Turns, ticks, crashes and a clock that jumps, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1e9
        self.state = DueState("s", 0, None)
        self.said = self.reflected = self.taken = self.number = 0
        self.working = False

    @rule()
    def say(self) -> None:
        self.said += 1
        self.number += 2
        self.state = replace(self.state, pending=self.state.pending + 1, last_at=self.now)

    @rule(seconds=st.floats(0, 3_000))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(seconds=st.floats(0, 1e6))
    def set_back(self, seconds: float) -> None:
        self.now -= seconds

    @precondition(lambda self: not self.working)
    @rule()
    def tick(self) -> None:
        reason = find_due_reason(self.state, self.now, POLICY)
        if reason is None:
            return
        self.working, self.taken = True, self.said

    @precondition(lambda self: self.working)
    @rule()
    def end(self) -> None:
        later = self.said - self.taken
        mark = ReflectionMark(upto=self.number, ref=str(self.number))
        self.state = replace(self.state, pending=later, progress=self.state.progress.reach(mark))
        self.reflected, self.working = self.taken, False

    @precondition(lambda self: self.working)
    @rule()
    def fail(self) -> None:
        failed = self.state.progress.fail(self.now)
        self.state = replace(self.state, progress=failed)
        self.working = False

    @precondition(lambda self: self.working)
    @rule()
    def crash(self) -> None:
        self.working = False

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.state.pending == self.said - self.reflected


TestOneSession = OneSession.TestCase
