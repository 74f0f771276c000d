"""Results that came too late for their own turn, and which later turn may use them.

A result belongs to the conversation up to the message that asked for it. A turn that goes on from
there may use it; one on another branch of a fork, where that message was never said, may not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from topicloom.state.curation import Curation, CurationPolicy, Entry

T = TypeVar("T")

_OVERLAP = 0.5
"""Share of the terms of whichever side has fewer, from which two turns are about the same."""


@dataclass(frozen=True, slots=True)
class Interest:
    """What a turn is about."""

    focus: str | None
    """Anchor of the event in focus."""
    terms: frozenset[str]
    """Words to look for."""

    def fits(self, other: Interest) -> bool:
        """Whether what was found for one is of use for the other."""
        if self.focus is not None and self.focus == other.focus:
            return True
        fewer = min(len(self.terms), len(other.terms))
        return fewer > 0 and len(self.terms & other.terms) >= _OVERLAP * fewer


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the conversation: everything up to one message."""

    count: int
    """Messages up to there."""
    head: str | None
    """Ref of the last of them, which stands for all."""

    def on(self, refs: Sequence[str]) -> bool:
        """Whether a conversation goes on from here.

        Args:
            refs: The refs of all of its messages, in order.
        """
        return 0 < self.count <= len(refs) and refs[self.count - 1] == self.head


@dataclass(frozen=True, slots=True)
class Result:
    """What a curation came to."""

    place: Place
    """The message that asked for it."""
    interest: Interest
    """What it was about."""
    curation: Curation
    """What was picked."""


def serving(
    results: Sequence[Result],
    *,
    turn: int,
    interest: Interest,
    refs: Sequence[str],
    seen: Sequence[Entry],
    policy: CurationPolicy,
) -> Curation | None:
    """The newest result of an earlier turn that is of use to this one.

    Args:
        results: What there is, in any order.
        turn: Number of this turn.
        interest: What it is about.
        refs: Refs of all messages of the conversation, in order.
        seen: Entries that the prompt shows already; a result of nothing else is of no use.
        policy: How old a result may be.
    """
    shown = {(e.id, e.text) for e in seen}
    for result in sorted(results, key=lambda r: -r.curation.turn):
        made = result.curation
        young = 0 < turn - made.turn <= policy.age
        if not (young and result.place.on(refs) and result.interest.fits(interest)):
            continue
        fresh = tuple(e for e in made.entries if (e.id, e.text) not in shown)
        if fresh:
            return made.model_copy(update={"entries": fresh, "prefetched": True})
    return None


def kept(
    items: Sequence[T], turn_of: Callable[[T], int], turn: int, policy: CurationPolicy
) -> list[T]:
    """Those of some results that are worth keeping, the newest and not too old.

    Turns of the future stay: the session went back to an old checkpoint and may return.
    """
    young = [i for i in items if turn - turn_of(i) <= policy.age]
    return sorted(young, key=turn_of)[-policy.kept :]
