"""How alike topics are, by the vectors of their messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

import numpy as np
from cachetools import LRUCache

from topicloom.errors import StorageError
from topicloom.index.embedder import Embedder, Vectors, unit_rows
from topicloom.index.vectors import StoredVectors
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore

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
    """That of the newest messages [1, d]; zero if there are none."""

    def compare(self, one: str, other: str) -> float:
        """Likeness of two topics: a cosine."""
        return float(self.rows[self.row_numbers[one]] @ self.rows[self.row_numbers[other]])

    def measure_nearness(self, topic: str, active: Sequence[str]) -> float:
        """Likeness of a topic to the nearest of the active ones and the newest messages."""
        beside = [self.row_numbers[i] for i in active if i in self.row_numbers and i != topic]
        discussed = np.concatenate([self.rows[beside], self.now])
        return float((discussed @ self.rows[self.row_numbers[topic]]).max())


class TopicVectorSums:
    """Sums of the vectors of topics' messages, cached by the heads, which change with them."""

    def __init__(self, size: int = 4_096) -> None:
        self._known: LRUCache[str, VectorSum] = LRUCache(size)
        self._lock = Lock()

    def compute(
        self, store: SessionStore, embedder: Embedder, topics: Sequence[Topic]
    ) -> dict[str, VectorSum]:
        """Sum [d] and number of messages by topic; those that cannot be read are left out."""
        heads = {t.id: t.head for t in topics if t.head is not None}
        with self._lock:
            known = {head: self._known[head] for head in heads.values() if head in self._known}
        said: dict[str, list[StoredMessage]] = {}
        for unknown in (t for t in topics if heads.get(t.id) not in known):
            with suppress(StorageError):
                said[unknown.id] = store.topic_messages(unknown)
        if said:
            stored = StoredVectors(embedder, store.log)
            vectors = stored.of([r for rs in said.values() for r in rs])
            begins = np.cumsum([len(messages) for messages in said.values()])[:-1]
            for topic, part in zip(said, np.split(vectors, begins), strict=True):
                known[heads[topic]] = part.sum(axis=0), len(part)
            if not stored.incomplete:
                with self._lock:
                    self._known.update(known)
        return {topic: known[head] for topic, head in heads.items() if head in known}


def compute_centroids(
    sums: Mapping[str, VectorSum], embedder: Embedder, newest: Sequence[StoredMessage]
) -> ReviewCentroids:
    """The centroids of at least one topic, and of the newest messages of the conversation."""
    counts = np.array([[count] for _, count in sums.values()], dtype=np.float32)
    rows = np.stack([row for row, _ in sums.values()])
    common = rows.sum(axis=0) / counts.sum()
    now = np.zeros((1, embedder.dimension), dtype=np.float32)
    if newest:
        now = embedder.embed([r.line for r in newest]).mean(axis=0, keepdims=True) - common
    return ReviewCentroids(
        row_numbers={topic: row for row, topic in enumerate(sums)},
        rows=unit_rows(rows / counts - common),
        now=unit_rows(now),
    )
