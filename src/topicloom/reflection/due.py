"""Decides when a session is reflected upon: a state machine whose clock is a value.

All times are seconds since the epoch. A clock may be set back: a time in the future is then
taken for as far away as one in the past, so that nothing waits longer than it should for long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, Field

Reason = Literal["count", "silence", "review"]
"""The cause: enough rounds, nothing new for long enough, or the time for a review."""

_MARKS = 16
"""Marks that are kept: so many branches of a forked session do not begin again."""
_LONGEST_WAIT = 6
"""Failures in a row after which the wait no longer doubles."""


class ReflectionPolicy(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """The settings that decide when sessions are reflected upon."""

    turns: int = Field(default=6, ge=1)
    """A reflection begins after so many rounds of the user."""
    idle_seconds: float = Field(default=600.0, gt=0)
    """It also begins after so many seconds of silence, if anything is pending."""
    tick_seconds: float = Field(default=600.0, gt=0)
    """Seconds between two looks at all sessions."""
    review_seconds: float = Field(default=86_400.0, gt=0)
    """Seconds from one review of a session to the next; a day."""
    hold_imported: bool = False
    """True to keep facts of imported conversations out of prompts until a person confirms them."""
    lease_seconds: float = Field(default=900.0, gt=0)
    """Seconds that a reflection may take. Then another process may begin it again."""
    messages: int = Field(default=200, ge=1)
    """Messages that one reflection reads, in whole rounds; what is left is read by the next."""
    at_once: int = Field(default=4, ge=1)
    """Sessions that one process reflects upon at a time."""


class ReflectionMark(BaseModel, frozen=True):
    """A message up to which a session was reflected upon."""

    upto: int
    ref: str
    """Its ref in the transcript, which tells branches of a forked session apart."""


class ReflectionProgress(BaseModel, frozen=True):
    """The stored progress of a session's reflections."""

    marks: tuple[ReflectionMark, ...] = ()
    failures: int = 0
    """Reflections that failed since the last that did not."""
    failed_at: float | None = None
    """When the last of them failed."""
    reviewed_at: float | None = None
    """When the last review ended."""

    def find_reached(self, refs: Sequence[str]) -> int:
        """The number of the last message reflected upon on the branch of these refs; 0 for none."""
        here = (m.upto for m in self.marks if m.upto <= len(refs) and refs[m.upto - 1] == m.ref)
        return max(here, default=0)

    def reach(self, mark: ReflectionMark) -> ReflectionProgress:
        marks = (*(m for m in self.marks if m != mark), mark)[-_MARKS:]
        return ReflectionProgress(marks=marks, reviewed_at=self.reviewed_at)

    def review(self, now: float) -> ReflectionProgress:
        return self.model_copy(update={"reviewed_at": now, "failures": 0})

    def fail(self, now: float) -> ReflectionProgress:
        return self.model_copy(update={"failures": self.failures + 1, "failed_at": now})


@dataclass(frozen=True, slots=True)
class DueState:
    """Facts that decide if a session is due, of its checkpoint and its earlier reflections."""

    session: str
    pending: int
    """User rounds since the last message that was reflected upon."""
    last_at: float | None
    """When the newest message was said; None if unknown."""
    progress: ReflectionProgress = field(default_factory=ReflectionProgress)
    waiting: bool = False
    """True if the newest pending round has no reply yet."""


def find_due_reason(state: DueState, now: float, policy: ReflectionPolicy) -> Reason | None:
    """The reason why a session is due now; None if it is not.

    One whose last reflection failed a short while ago is not due.
    """
    if state.pending <= 0 or _is_backing_off(state, now, policy):
        return None
    if state.pending - state.waiting >= policy.turns:
        return "count"
    return None if is_within(state.last_at, now, policy.idle_seconds) else "silence"


def is_review_due(state: DueState, now: float, policy: ReflectionPolicy) -> bool:
    """True if it is time for a review: a day after the last, in silence, if anything was said."""
    said, last = state.last_at, state.progress.reviewed_at
    if said is None:
        return False
    waits = is_within(said, now, policy.idle_seconds) or _is_backing_off(state, now, policy)
    again = last is None or (said > last and not is_within(last, now, policy.review_seconds))
    return again and not waits


def _is_backing_off(state: DueState, now: float, policy: ReflectionPolicy) -> bool:
    """True if it is too early to try again: after 1, 2, 4, ... ticks, up to 64.

    Half a tick less than that, because a failure is noted after its tick began.
    """
    failures = min(state.progress.failures, _LONGEST_WAIT + 1)
    seconds = (2 ** (failures - 1) - 0.5) * policy.tick_seconds
    return failures > 0 and is_within(state.progress.failed_at, now, seconds)


def is_within(then: float | None, now: float, seconds: float) -> bool:
    """True if two times are less than so many seconds apart, whichever is the earlier."""
    return then is not None and abs(now - then) < seconds
