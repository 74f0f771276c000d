"""The source that looks through the document's events: those near the one in focus, and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from topicloom.domain.curation import Candidate
from topicloom.domain.document import DocumentEvent, get_anchor, get_label, is_active
from topicloom.domain.plan import SearchIntent
from topicloom.domain.sources import Passage, add_keywords, list_best, score_words

Direction = Literal["before", "after"]


def find_related_events(
    events: Sequence[DocumentEvent], focus: str, depth: int
) -> dict[str, tuple[int, Direction]]:
    """Events before and after one, by anchor, with how many steps away they are.

    A walk keeps its direction: what else comes after a predecessor is neither. The focus is not in
    the result, links to no event lead nowhere, and rings are walked once.
    """
    earlier, later = _link_events(events)
    walks: dict[Direction, dict[str, set[str]]] = {"before": earlier, "after": later}
    found: dict[str, tuple[int, Direction]] = {}
    for direction, links in walks.items():
        reached = {focus}
        for step in range(1, depth + 1):
            reached = {n for i in reached for n in links.get(i, ())} - found.keys() - {focus}
            found |= dict.fromkeys(sorted(reached), (step, direction))
    return found


def _link_events(
    events: Sequence[DocumentEvent],
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    earlier: dict[str, set[str]] = {anchor: set() for e in events if (anchor := get_anchor(e))}
    later: dict[str, set[str]] = {anchor: set() for anchor in earlier}
    for event in events:
        own = get_anchor(event) or ""
        pairs = [(i, own) for i in _read_ids(event.get("after"))]
        pairs += [(own, i) for i in _read_ids(event.get("before"))]
        for first, second in pairs:
            if first in earlier and second in earlier:
                later[first].add(second)
                earlier[second].add(first)
    return earlier, later


def _read_ids(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [str(i) for i in listed if isinstance(i, str | int) and not isinstance(i, bool)]


_DEPTH = 2
_NEAR = (1.0, 0.6)


class EventSource:
    """Searches events: neighbours of the focus (an anchor), and others by their words.

    Active events are in the skeleton already, and are only walked through here.
    """

    def __init__(self, events: Sequence[DocumentEvent], focus: str | None) -> None:
        near = find_related_events(events, focus, _DEPTH) if focus else {}
        over = {get_anchor(e): e for e in events if not is_active(e)}
        passages = {
            anchor: Passage(
                f"event_{anchor}", get_label(e), _format_event(e), near.get(anchor, ())[1:]
            )
            for anchor, e in over.items()
            if anchor and anchor != focus
        }
        self._passages = list(passages.values())
        self._near = [_NEAR[near[i][0] - 1] if i in near else 0.0 for i in passages]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        words = score_words(self._passages, add_keywords(query, intent))
        scores = np.maximum(words, self._near)
        return list_best("event", self._passages, scores, limit)


def _format_event(event: DocumentEvent) -> str:
    return "\n".join(f"{k}: {_format_value(v)}" for k, v in event.items() if k != "_anchor")


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_format_value, value))
    return str(value)
