"""Sleeping topics by the local index: their own best messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from topicloom.background import uninterrupted
from topicloom.index.session_index import Hits
from topicloom.perception.sources.base import preview_of, with_keywords
from topicloom.state.candidates import Candidate
from topicloom.state.plan import SearchIntent
from topicloom.state.recall import number_of
from topicloom.state.records import Record
from topicloom.state.topics import Topic

_TOPICS = 8
"""Topics that are looked into."""
_QUOTES = 3
"""Messages of a topic that are shown."""


class TopicSource:
    """Searches topics by the index's own relevance, and quotes the messages that it is due to."""

    def __init__(
        self,
        topics: Sequence[Topic],
        search: Callable[[str], Hits],
        records: Callable[[Topic], Sequence[Record]],
        shown: Collection[str],
    ) -> None:
        """Args:
        topics: Topics that nobody reads in this turn.
        search: Asks the index.
        records: Gives the messages of a topic.
        shown: Short ids of messages that the prompt shows already.
        """
        self._topics = {t.id: t for t in topics}
        self._search = search
        self._records = records
        self._shown = shown
        self._texts: dict[str, str] = {}

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        """The topics that fit best; see `Source.search`."""
        if not self._topics:
            return []
        with uninterrupted():
            hits = self._search(with_keywords(query, intent))
        ranked = sorted(
            (t for t in hits.topics if t in self._topics), key=lambda t: -hits.topics[t]
        )
        self._texts = {
            f"topic_{t}": text
            for t in ranked[: min(limit, _TOPICS)]
            if (text := self._quoted(self._topics[t], hits.weights))
        }
        return [
            Candidate(
                id=name,
                kind="topic",
                title=self._topics[name.removeprefix("topic_")].name,
                preview=preview_of(text),
                score=hits.topics[name.removeprefix("topic_")],
            )
            for name, text in self._texts.items()
        ]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The best messages of topics; see `Source.fetch`."""
        return {i: self._texts[i] for i in ids if i in self._texts}

    def _quoted(self, topic: Topic, weights: Mapping[str, float]) -> str:
        """The best messages of a topic, in conversation order; empty if all are shown."""
        found = [r for r in self._records(topic) if r.id in weights and r.id not in self._shown]
        best = sorted(found, key=lambda r: -weights[r.id])[:_QUOTES]
        best.sort(key=lambda r: number_of(r.id))
        return "\n".join(f"[{r.id}] {r.line}" for r in best)
