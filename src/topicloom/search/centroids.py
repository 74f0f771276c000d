"""Topics by vectors: sums of their messages', centroids, and the search for topics by a query.

A session's index keeps sums as messages come (`MessageTable`) and finds topics by centroid (the
kernel of a topic) and brief, in a FAISS index: for recall, and for the boundary detector, which
asks it to which known topic a message returns. Messages are not in one: their ranking needs the
cosine of every message, for which FAISS takes 3 to 7 times as long as a product of matrices. A
review has no index: it sums what is stored, and compares topics with one another.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.errors import StorageError
from topicloom.search.embedder import Embedder, Vectors, dot_products, unit_rows
from topicloom.search.vectors import BEGINNING, StoredVectors
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore

_NONE, _SURE = 0.2, 0.8
"""Cosines to a centroid or brief that mean nothing and everything."""
_RETURNS = 0.5
"""Relevance from which a message that begins something returns to a topic: half way between."""
_NEAREST = 512
"""Centroids and briefs that a query or round is given; what lies further means nothing to it."""


class TopicCentroids:
    """Inner product over unit vectors: the mean of a topic's messages, and its brief."""

    def __init__(self, vectors: StoredVectors, dimension: int) -> None:
        self._vectors = vectors
        self._dimension = dimension
        self._texts: dict[str, str] = {}
        self._briefs: dict[str, Vectors] = {}
        self._ids: list[str] = []
        self._index: Any = None

    def outdated(self, texts: Mapping[str, str]) -> bool:
        """True if a topic is recognised by other words than those that are held."""
        return texts != self._texts

    def update(self, texts: Mapping[str, str], sums: Sequence[NDArray[np.float64]]) -> None:
        """Make the index anew.

        Args:
            texts: By topic, the words that it is recognised by; empty if there are none yet.
            sums: Sum of the vectors of each one's messages [d].
        """
        fresh = [i for i, text in texts.items() if text and text != self._texts.get(i)]
        made = self._vectors.of_texts([texts[i][:BEGINNING] for i in fresh])
        known = self._briefs | dict(zip(fresh, made, strict=True))
        self._texts = dict(texts)
        self._briefs = {i: known[i] for i, text in texts.items() if text}
        self._ids = [*texts, *self._briefs]
        means, briefs = (
            np.array(rows, dtype=np.float32).reshape(-1, self._dimension)
            for rows in (sums, list(self._briefs.values()))
        )
        import faiss  # loads a large library: only sessions with topics need it

        self._index = faiss.IndexFlatIP(self._dimension)
        self._index.add(np.concatenate([unit_rows(means), briefs]))

    def relevance(self, query: Vectors) -> dict[str, float]:
        """Relevance of topics to a query vector [d], 0 to 1, the better of centroid and brief."""
        found: dict[str, float] = {}
        if not self._ids:
            return found
        cosines, rows = self._index.search(query[None, :], min(_NEAREST, len(self._ids)))
        for row, cosine in zip(rows[0].tolist(), cosines[0].tolist(), strict=True):
            scaled = min(1.0, max(0.0, (cosine - _NONE) / (_SURE - _NONE)))
            topic = self._ids[row]
            found[topic] = max(found.get(topic, 0.0), scaled)
        return found

    def find_return(self, query: Vectors, topics: Container[str]) -> str | None:
        """The one of some topics that a query vector [d] is nearest to; None if none is near."""
        found = {t: near for t, near in self.relevance(query).items() if t in topics}
        best = max(found, key=found.__getitem__, default=None)
        return best if best is not None and found[best] >= _RETURNS else None


VectorSum = tuple[Vectors, int]
"""Sum of the vectors of a topic's messages [d], and their number."""


@dataclass(frozen=True, slots=True)
class ReviewCentroids:
    """Mean vectors of topics and of the newest messages, less what all have in common.

    That, such as the names of the speakers, says nothing about two of the topics.
    """

    row_numbers: Mapping[str, int]
    rows: Vectors
    """Unit vectors [topics, d]."""
    now: Vectors
    """That of the newest messages [1, d]; zero if there are none, or they cannot be embedded."""

    def compare(self, one: str, other: str) -> float:
        """Likeness of two topics: a cosine."""
        return float(self.rows[self.row_numbers[one]] @ self.rows[self.row_numbers[other]])

    def measure_nearness(self, topic: str, active: Sequence[str]) -> float:
        """Likeness of a topic to the nearest of the active ones and the newest messages."""
        others = [self.row_numbers[i] for i in active if i in self.row_numbers and i != topic]
        discussed = np.concatenate([self.rows[others], self.now])
        return float(dot_products(discussed, self.rows[self.row_numbers[topic]]).max())


def sum_vectors(
    store: SessionStore, session: Session, embedder: Embedder, topics: Sequence[Topic]
) -> dict[str, VectorSum]:
    """Sum [d] and number of messages by topic; those that cannot be read are left out."""
    messages: dict[str, Sequence[StoredMessage]] = {}
    for topic in topics:
        with suppress(StorageError):
            messages[topic.id] = store.topic_messages(session, topic)
    held = {topic: said for topic, said in messages.items() if said}
    if not held:
        return {}
    flat = [message for said in held.values() for message in said]
    refs = store.transcript_refs(session)
    places = [refs[message.seq - 1] for message in flat]
    vectors = StoredVectors(embedder, store.log).of(flat, places)
    begins = np.cumsum([len(said) for said in held.values()])[:-1]
    parts = zip(held, np.split(vectors, begins), strict=True)
    return {topic: (part.sum(axis=0), len(part)) for topic, part in parts}


def compute_centroids(
    sums: Mapping[str, VectorSum], embedder: Embedder, newest: Sequence[StoredMessage]
) -> ReviewCentroids:
    """The centroids of at least one topic, and of the newest messages of the conversation."""
    counts = np.array([[count] for _, count in sums.values()], dtype=np.float32)
    rows = np.stack([row for row, _ in sums.values()])
    common = rows.sum(axis=0) / counts.sum()
    now = np.zeros((1, embedder.dimension), dtype=np.float32)
    vectors = embedder.embed([r.line for r in newest])
    if vectors.any():
        now = vectors.mean(axis=0, keepdims=True) - common
    return ReviewCentroids(
        row_numbers={topic: row for row, topic in enumerate(sums)},
        rows=unit_rows(rows / counts - common),
        now=unit_rows(now),
    )
