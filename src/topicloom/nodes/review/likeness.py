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
    stored = StoredVectors(embedder, store.log)
    sums = np.zeros((len(topics), embedder.dimension), dtype=np.float32)
    counts = np.zeros((len(topics), 1), dtype=np.float32)
    for row, (topic, records) in enumerate(topics):
        refs = store.log.refs(topic.chain, topic.head)
        sums[row] = stored.of(refs, [r.line for r in records]).sum(axis=0)
        counts[row] = len(records)
    common = sums.sum(axis=0) / max(1.0, float(counts.sum()))
    now = np.zeros((1, embedder.dimension), dtype=np.float32)
    if newest:
        now = embedder.embed([r.line for r in newest]).mean(axis=0, keepdims=True) - common
    return Kernels(
        places={topic.id: row for row, (topic, _) in enumerate(topics)},
        rows=unit_rows(sums / np.maximum(counts, 1) - common),
        now=unit_rows(now),
    )
