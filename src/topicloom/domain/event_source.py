"""The source that looks through the document's events: those near the one in focus, and others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from topicloom.domain.curation import Candidate
from topicloom.domain.document import DocumentEvent, get_anchor, get_label, is_active
from topicloom.domain.plan import SearchIntent
from topicloom.domain.sources import add_keywords, list_best, score_words
from topicloom.domain.yaml_text import format_yaml

Direction = Literal["before", "after"]


def find_related_events(
    events: Sequence[DocumentEvent], focus: str, depth: int
) -> dict[str, tuple[int, Direction]]:
    """Events before and after one, by anchor, with how many steps away they are.

    A walk keeps its direction: what else comes after a predecessor is neither. The focus is not in
    the result, links to no event lead nowhere, and rings are walked once.
    """
    found: dict[str, tuple[int, Direction]] = {}
    for direction, links in _link_events(events).items():
        reached = {focus}
        for step in range(1, depth + 1):
            reached = {n for i in reached for n in links.get(i, ())} - found.keys() - {focus}
            found |= dict.fromkeys(sorted(reached), (step, direction))
    return found


def _link_events(
    events: Sequence[DocumentEvent],
) -> Mapping[Direction, Mapping[str, set[str]]]:
    """The events right before and right after each, by anchor."""
    known = {get_anchor(event) for event in events} - {None}
    earlier, later = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for event in events:
        for field, there, back in (("after", earlier, later), ("before", later, earlier)):
            listed = event.get(field)
            for other in map(str, listed if isinstance(listed, list) else [listed]):
                own = get_anchor(event)
                if own is not None and other in known:
                    there[own].add(other)
                    back[other].add(own)
    return {"before": earlier, "after": later}


_DEPTH = 2
_NEAR = (1.0, 0.6)


class EventSource:
    """Searches events: neighbours of the focus (an anchor), and others by their words.

    Active events are in the skeleton already, and are only walked through here.
    """

    def __init__(self, events: Sequence[DocumentEvent], focus: str | None) -> None:
        near = find_related_events(events, focus, _DEPTH) if focus else {}
        over = {get_anchor(e): e for e in events if not is_active(e)}
        candidates = {
            anchor: Candidate(
                id=f"event_{anchor}",
                kind="event",
                text=format_yaml(event, {}),
                title=get_label(event),
                tags=near.get(anchor, ())[1:],
            )
            for anchor, event in over.items()
            if anchor and anchor != focus
        }
        self._candidates = list(candidates.values())
        self._near = [_NEAR[near[i][0] - 1] if i in near else 0.0 for i in candidates]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        words = score_words(self._candidates, add_keywords(query, intent))
        return list_best(self._candidates, np.maximum(words, self._near), limit)
