"""Topics by kernel and brief, in a FAISS index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from topicloom.perception.embedder import Embedder, Vectors, unit_rows
from topicloom.state.topics import Roster

_NONE, _SURE = 0.2, 0.8
"""Cosines to a kernel or brief that mean nothing and everything."""


class TopicKernels:
    """Inner product over unit vectors: the mean of a topic's messages, and its brief."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._briefs: dict[str, str] = {}
        self._ids: list[str] = []
        self._index: Any = None

    def outdated(self, roster: Roster) -> bool:
        """Whether a brief is not the one that is held."""
        return {t.id: t.brief for t in roster} != self._briefs

    def update(self, roster: Roster, vectors: Vectors, owners: Sequence[str]) -> None:
        """Make the index anew.

        Args:
            roster: The topics.
            vectors: Vectors [n, d] of the messages in them.
            owners: Topic id of each [n].
        """
        import faiss  # loads a large library: only sessions with topics need it

        places = {topic.id: i for i, topic in enumerate(roster)}
        sums = np.zeros((len(places), self._embedder.dimension), dtype=np.float32)
        np.add.at(sums, [places[o] for o in owners], vectors)
        briefs = self._embedder.embed([f"{t.name}. {t.brief}" for t in roster])
        self._index = faiss.IndexFlatIP(self._embedder.dimension)
        self._index.add(np.concatenate([unit_rows(sums), briefs]))
        self._ids = [*places, *places]
        self._briefs = {t.id: t.brief for t in roster}

    def relevance(self, query: Vectors) -> dict[str, float]:
        """Relevance of topics to a query vector [d], 0 to 1, the better of kernel and brief."""
        if self._index is None or not self._ids:
            return {}
        cosines, rows = self._index.search(query[None, :], len(self._ids))
        found: dict[str, float] = {}
        for cosine, row in zip(cosines[0], rows[0], strict=True):
            scaled = min(1.0, max(0.0, (float(cosine) - _NONE) / (_SURE - _NONE)))
            topic = self._ids[row]
            found[topic] = max(found.get(topic, 0.0), scaled)
        return found
