"""Sources that look through the session: summaries of its topics, and messages of unread ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topicloom.background import defer_exit
from topicloom.domain.curation import Candidate
from topicloom.domain.plan import SearchIntent
from topicloom.domain.sources import add_keywords, list_best, score_words
from topicloom.search.hits import Hits
from topicloom.state.recall import parse_message_number
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

_OLDEST = 0.5
"""Weight of the oldest against the newest, all else equal."""


class NarrativeSource:
    """Searches summaries by recency-weighted words."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        described = [t for t in topics if t.summary or t.brief]
        self._newest = np.array([t.newest for t in described], dtype=float)
        self._candidates = [
            Candidate(
                id=f"narrative_{t.id}",
                kind="narrative",
                text=t.summary or t.brief,
                title=t.name,
                tags=("archived",) if t.status == "archived" else (),
            )
            for t in described
        ]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        age = 1 - self._newest / self._newest.max(initial=1.0)
        recency = 1 - (1 - _OLDEST) * age
        scores = score_words(self._candidates, add_keywords(query, intent), recency)
        return list_best(self._candidates, scores, limit)


_TOPICS = 8
_QUOTES = 3


@dataclass(slots=True)
class TopicSource:
    """Searches topics by the index's own relevance, and quotes the messages that it is due to."""

    topics: Sequence[Topic]
    """Topics that are not read in this turn."""
    hits: Callable[[str], Hits]
    """Asks the index."""
    messages: Callable[[Topic], Sequence[StoredMessage]]
    shown: Collection[str]
    """Short ids of messages that the prompt shows already."""

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        topics = {t.id: t for t in self.topics}
        if not topics:
            return []
        with defer_exit():
            hits = self.hits(add_keywords(query, intent))
        known = [t for t in hits.topics if t in topics]
        ranked = sorted(known, key=lambda t: -hits.topics[t])[: min(limit, _TOPICS)]
        quotes = {t: self._format_quotes(topics[t], hits.weights) for t in ranked}
        return [
            Candidate(
                id=f"topic_{t}",
                kind="topic",
                text=text,
                title=topics[t].name,
                score=float(hits.topics[t]),
            )
            for t, text in quotes.items()
            if text
        ]

    def _format_quotes(self, topic: Topic, weights: Mapping[str, float]) -> str:
        """The best messages of a topic, in conversation order; empty if all are shown."""
        found = [m for m in self.messages(topic) if m.id in weights and m.id not in self.shown]
        best = sorted(found, key=lambda m: -weights[m.id])[:_QUOTES]
        best.sort(key=lambda m: parse_message_number(m.id))
        return "\n".join(f"[{m.id}] {m.line}" for m in best)
