"""What comes before which event, and after it (spec 004, 6.2).

An event may have `after`, ids of the events that it comes after, and `before`, ids of those that it
comes before. Either side may name the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from topicloom.state.document import anchor_of
from topicloom.state.events import Event

Direction = Literal["before", "after"]
"""Whether an event lies before or after another."""


def around(events: Sequence[Event], focus: str, depth: int) -> dict[str, tuple[int, Direction]]:
    """Events before and after one, by anchor, with how many steps away they are.

    A walk keeps its direction: what else comes after a predecessor is neither.

    Args:
        events: All events; links to others lead nowhere, and rings are walked once.
        focus: Anchor of the event to begin at; it is not among the result.
        depth: Steps at most.
    """
    earlier, later = _links(events)
    found: dict[str, tuple[int, Direction]] = {}
    walks: tuple[tuple[dict[str, set[str]], Direction], ...] = (
        (earlier, "before"),
        (later, "after"),
    )
    for links, direction in walks:
        reached = {focus}
        for step in range(1, depth + 1):
            reached = {n for i in reached for n in links.get(i, ())} - found.keys() - {focus}
            found |= dict.fromkeys(sorted(reached), (step, direction))
    return found


def _links(events: Sequence[Event]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The events right before each, and right after each."""
    known = {anchor for e in events if (anchor := anchor_of(e))}
    earlier: dict[str, set[str]] = {i: set() for i in known}
    later: dict[str, set[str]] = {i: set() for i in known}
    for event in events:
        own = anchor_of(event) or ""
        pairs = [(i, own) for i in _ids(event.get("after"))]
        pairs += [(own, i) for i in _ids(event.get("before"))]
        for first, second in pairs:
            if first in known and second in known:
                later[first].add(second)
                earlier[second].add(first)
    return earlier, later


def _ids(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [str(i) for i in listed if isinstance(i, str | int) and not isinstance(i, bool)]
