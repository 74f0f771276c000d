"""Events of the document that are not going on: what led here, what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topicloom.perception.sources.base import (
    SURE_COVER,
    preview_of,
    scaled,
    with_keywords,
    word_index,
)
from topicloom.state.candidates import Candidate
from topicloom.state.document import anchor_of, label_of
from topicloom.state.event_graph import around
from topicloom.state.events import Event, is_active
from topicloom.state.plan import SearchIntent

_DEPTH = 2
"""Steps from the focus that are walked."""
_NEAR = (1.0, 0.6)
"""Worth of an event by its steps from the focus."""


class EventSource:
    """Searches events: neighbours of the focus, and others by their words (spec 004, 6.2).

    Active events are in the skeleton already, and are only walked through here.
    """

    def __init__(self, events: Sequence[Event], focus: str | None) -> None:
        """Args:
        events: All events of the document.
        focus: Anchor of the event that the turn is about.
        """
        self._all = events
        self._focus = focus
        over = [(anchor_of(e), e) for e in events if not is_active(e)]
        self._events = {anchor: e for anchor, e in over if anchor and anchor != focus}

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        """The events that fit best; see `Source.search`."""
        if not self._events:
            return []
        near = around(self._all, self._focus, _DEPTH) if self._focus else {}
        index = word_index(tuple((label_of(e), _text(e)) for e in self._events.values()))
        words, cover = index.scores(with_keywords(query, intent))
        scores = dict(zip(self._events, scaled(words, cover / SURE_COVER), strict=True))
        for anchor, (steps, _) in near.items():
            if anchor in scores:
                scores[anchor] = max(scores[anchor], _NEAR[steps - 1])
        best = sorted((a for a in scores if scores[a] > 0), key=lambda a: -scores[a])[:limit]
        return [
            Candidate(
                id=f"event_{anchor}",
                kind="event",
                title=label_of(self._events[anchor]),
                preview=preview_of(_text(self._events[anchor])),
                score=float(scores[anchor]),
                tags=(near[anchor][1],) if anchor in near else (),
            )
            for anchor in best
        ]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Whole events, a line a field; see `Source.fetch`."""
        return {f"event_{a}": _text(e) for a, e in self._events.items() if f"event_{a}" in ids}


def _text(event: Event) -> str:
    return "\n".join(f"{key}: {_said(value)}" for key, value in event.items() if key != "_anchor")


def _said(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_said(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return str(value)
