"""The second step of the funnel: rating a message by what stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from topicloom.boundary.cues import Said
from topicloom.boundary.model import BoundaryModel
from topicloom.boundary.policy import AdsorberPolicy
from topicloom.index.embedder import Embedder, Vectors, unit_rows
from topicloom.state.blocks import LogicalBlock
from topicloom.state.records import Record, hours_between

_BEGINNING = 200
"""Characters embedded of a reply: what it is about shows in its first lines, and a turn waits."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What a screening makes of a message."""

    score: float
    """What its thresholds are for; the higher, the likelier the open topic continues."""
    continues: float
    """Probability that the open topic continues."""


class Screening(Protocol):
    """Rates messages."""

    def rate(self, before: Sequence[LogicalBlock], block: LogicalBlock) -> Rating:
        """Rate a message as it arrives.

        Args:
            before: The newest blocks before it, oldest first; not empty.
            block: The message, alone in its block.
        """
        ...

    def begins(self, blocks: Sequence[LogicalBlock]) -> list[bool]:
        """Whether a topic begins at each block, looking back; the first one counts as its start."""
        ...


class TrainedScreening:
    """By the boundary model: the score is its probability, even at the granularity's threshold."""

    def __init__(self, model: BoundaryModel, embedder: Embedder, policy: AdsorberPolicy) -> None:
        self._model = model
        self._embedder = embedder
        self._policy = policy

    def rate(self, before: Sequence[LogicalBlock], block: LogicalBlock) -> Rating:
        """See `Screening.rate`."""
        records = _spoken([*before, block])
        said, vectors = _said(records), vectors_of(records, self._embedder)
        threshold = self._model.weights.thresholds["online"].of(self._policy.granularity)
        odds = self._pause(before[-1], block) * _odds(self._model.newest(said, vectors), threshold)
        return Rating(1 / (1 + odds), 1 / (1 + odds))

    def begins(self, blocks: Sequence[LogicalBlock]) -> list[bool]:
        """See `Screening.begins`."""
        records = _spoken(blocks)
        found = self._model.retrospective(_said(records), vectors_of(records, self._embedder))
        at = dict(zip((r.seq for r in records), map(float, found), strict=True))
        threshold = self._model.weights.thresholds["retrospective"].of(self._policy.granularity)
        pauses = [1.0, *(self._pause(a, b) for a, b in pairwise(blocks))][: len(blocks)]
        return [
            place == 0 or pause * _odds(at.get(block.first, 0.0), threshold) > 1
            for place, (block, pause) in enumerate(zip(blocks, pauses, strict=True))
        ]

    def _pause(self, before: LogicalBlock, block: LogicalBlock) -> float:
        """The factor of the pause between two blocks on the odds that a topic begins."""
        hours = hours_between(before.records[-1], block.records[0])
        return self._policy.pause_odds if hours >= self._policy.pause_hours else 1.0


class CosineScreening:
    """By the cosine of a message's anchor to the kernel of the open topic (spec 001, step 2)."""

    def __init__(
        self, embedder: Embedder, policy: AdsorberPolicy, trained: TrainedScreening
    ) -> None:
        """Args:
        embedder: Its encoder.
        policy: Which anchor.
        trained: Gives the probabilities, which a cosine is not.
        """
        self._embedder = embedder
        self._policy = policy
        self._trained = trained

    def rate(self, before: Sequence[LogicalBlock], block: LogicalBlock) -> Rating:
        """See `Screening.rate`."""
        last = max((i for i, b in enumerate(before) if b.opens), default=0)
        anchors = [self._anchor(b) for b in (*before[last:], block)]
        vectors = self._embedder.embed(anchors)
        kernel = unit_rows(vectors[:-1].sum(axis=0, keepdims=True))[0]
        score = float(kernel @ vectors[-1])
        return Rating(score, self._trained.rate(before, block).continues)

    def begins(self, blocks: Sequence[LogicalBlock]) -> list[bool]:
        """See `Screening.begins`: what was seen as the messages came; the spec looks never back."""
        return [place == 0 or block.opens for place, block in enumerate(blocks)]

    def _anchor(self, block: LogicalBlock) -> str:
        return block.anchor_text if self._policy.anchor == "context" else block.rewritten_query


def vectors_of(records: Sequence[Record], embedder: Embedder) -> Vectors:
    """Vectors [n, d] of what was said: user messages whole, the others by their beginning."""
    # A user message by the text that is searched with later in the turn: it is embedded once.
    return embedder.embed(
        [(r.query or r.text) if r.role == "user" else r.text[:_BEGINNING] for r in records]
    )


def block_vectors(blocks: Sequence[LogicalBlock], embedder: Embedder) -> Vectors:
    """Mean vector of each block's messages, as unit rows [blocks, d]."""
    flat = vectors_of([r for b in blocks for r in b.records], embedder)
    owner = np.repeat(np.arange(len(blocks)), [len(b.records) for b in blocks])
    sums = np.zeros((len(blocks), embedder.dimension), dtype=np.float32)
    np.add.at(sums, owner, flat)
    return unit_rows(sums)


def _spoken(blocks: Sequence[LogicalBlock]) -> list[Record]:
    """What people and models said: tool results are no talk, and neither are empty calls."""
    return [
        r for b in blocks for r in b.records if r.role in ("user", "assistant") and r.text.strip()
    ]


def _said(records: Sequence[Record]) -> list[Said]:
    first = records[0] if records else None
    return [
        Said(
            role=r.role,
            speaker=r.speaker,
            text=r.query or r.text,
            hours=hours_between(first, r) if first else None,
        )
        for r in records
    ]


def _odds(probability: float, threshold: float) -> float:
    """Odds of a probability, in units of those of a threshold."""
    p = min(max(probability, 1e-6), 1 - 1e-6)
    return (p / (1 - p)) / (threshold / (1 - threshold))
