"""How alike topics are, by the vectors of their messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topicloom.perception.embedder import Embedder, Vectors, unit_rows
from topicloom.perception.vectors import StoredVectors
from topicloom.state.records import Record
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore


@dataclass(frozen=True, slots=True)
class Kernels:
    """Mean vectors of topics and of the newest messages, less what all have in common.

    What a whole conversation has in common, such as the names of its speakers, says nothing about
    two of its topics.
    """

    places: Mapping[str, int]
    """Row of each topic."""
    rows: Vectors
    """Unit vectors [topics, d]."""
    now: Vectors
    """That of the newest messages [1, d]; zero if there are none."""

    def between(self, one: str, other: str) -> float:
        """Likeness of two topics: a cosine."""
        return float(self.rows[self.places[one]] @ self.rows[self.places[other]])

    def nearness(self, topic: str, awake: Sequence[str]) -> float:
        """Likeness of a topic to the nearest of those that are awake and to the newest messages."""
        beside = [self.places[i] for i in awake if i in self.places and i != topic]
        discussed = np.concatenate([self.rows[beside], self.now])
        return float((discussed @ self.rows[self.places[topic]]).max())


def kernels_of(
    store: SessionStore,
    embedder: Embedder,
    topics: Sequence[tuple[Topic, Sequence[Record]]],
    newest: Sequence[Record],
) -> Kernels:
    """The kernels of some topics.

    Args:
        store: Keeps vectors of messages.
        embedder: Makes those that are not there yet.
        topics: With their messages, at least one each.
        newest: The newest messages of the conversation.
    """
    counts = np.array([[len(records)] for _, records in topics], dtype=np.float32)
    said = [record for _, records in topics for record in records]
    vectors = StoredVectors(embedder, store.log).of(said)
    begins = np.cumsum(counts, dtype=np.int64)[:-1]
    sums = np.stack([part.sum(axis=0) for part in np.split(vectors, begins)])
    common = sums.sum(axis=0) / max(1.0, float(counts.sum()))
    now = np.zeros((1, embedder.dimension), dtype=np.float32)
    if newest:
        now = embedder.embed([r.line for r in newest]).mean(axis=0, keepdims=True) - common
    return Kernels(
        places={topic.id: row for row, (topic, _) in enumerate(topics)},
        rows=unit_rows(sums / np.maximum(counts, 1) - common),
        now=unit_rows(now),
    )
