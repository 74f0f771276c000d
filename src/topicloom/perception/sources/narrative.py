"""What was told: summaries and briefs of topics, found by their words, newer ones sooner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from topicloom.perception.sources.base import (
    SURE_COVER,
    preview_of,
    scaled,
    with_keywords,
    word_index,
)
from topicloom.state.candidates import Candidate
from topicloom.state.plan import SearchIntent
from topicloom.state.topics import Topic

_OLDEST = 0.5
"""What the oldest is worth against the newest, all else equal."""


class NarrativeSource:
    """Searches summaries by recency-weighted words (spec 004, 6.2)."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        """Args:
        topics: Topics that nobody reads in this turn, archived ones among them.
        """
        self._topics = [t for t in topics if _told(t)]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        """The summaries that fit best; see `Source.search`."""
        if not self._topics:
            return []
        index = word_index(tuple((t.name, _told(t)) for t in self._topics))
        words, cover = index.scores(with_keywords(query, intent))
        newest = np.array([t.newest for t in self._topics], dtype=float)
        age = 1 - newest / max(1.0, float(newest.max()))
        scores = scaled(words * (1 - (1 - _OLDEST) * age), cover / SURE_COVER)
        best = np.argsort(-scores, kind="stable")[:limit]
        return [self._candidate(int(row), float(scores[row])) for row in best if scores[row] > 0]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Whole summaries; see `Source.fetch`."""
        return {_id(t): _told(t) for t in self._topics if _id(t) in ids}

    def _candidate(self, row: int, score: float) -> Candidate:
        topic = self._topics[row]
        return Candidate(
            id=_id(topic),
            kind="narrative",
            title=topic.name,
            preview=preview_of(_told(topic)),
            score=score,
            tags=("archived",) if topic.status == "archived" else (),
        )


def _id(topic: Topic) -> str:
    return f"narrative_{topic.id}"


def _told(topic: Topic) -> str:
    return topic.summary or topic.brief
