"""The semantic boundary adsorber: does a block continue the open topic, or begin another?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from topicloom.perception.embedder import Embedder, Vectors
from topicloom.state.blocks import LogicalBlock
from topicloom.state.cues import Cues


class Adsorber(Protocol):
    """Tells where topics begin."""

    def opens(self, blocks: Sequence[LogicalBlock], query: str) -> bool:
        """Whether a new message begins a topic, by what is known when it arrives.

        Args:
            blocks: The newest blocks of the conversation, oldest first.
            query: The new message, with references resolved.
        """
        ...

    def segments(self, blocks: Sequence[LogicalBlock]) -> list[int]:
        """The segment of each block, counted from 0, looking back over all of them."""
        ...


class AdsorberPolicy(BaseModel):
    """Thresholds of the funnel (spec 001, section 3), on what MiniLM's cosine really does.

    The spec's 0.75 and 0.40 belong to another encoder; with this one a topic that continues
    often stands at 0.2.
    """

    model_config = ConfigDict(frozen=True)

    memory: int = Field(4, ge=1)
    """Blocks that a new message is compared with; the nearest counts."""
    low: float = 0.12
    """Similarity below which a topic begins."""
    filler_characters: int = 6
    """A message this short says nothing about its topic (spec 001: under 5 tokens)."""
    fewest: int = Field(8, ge=3)
    """Blocks from which valleys can be told from noise; below, what was seen online counts."""
    depth_window: int = Field(2, ge=1)
    """Blocks on each side of a gap that the retrospective pass compares."""
    depth_factor: float = 0.5
    """A gap is a boundary if its depth exceeds the mean by this many standard deviations."""


class SemanticAdsorber:
    """Similarity to the last blocks online; depth of the similarity valleys in retrospect.

    The depth score is Hearst's (TextTiling, 1997): how far the similarity at a gap lies below
    the peaks on both sides of it.
    """

    def __init__(
        self, embedder: Embedder, fillers: Cues, policy: AdsorberPolicy | None = None
    ) -> None:
        self._embedder = embedder
        self._fillers = fillers
        self._policy = policy or AdsorberPolicy()

    def opens(self, blocks: Sequence[LogicalBlock], query: str) -> bool:
        """See `Adsorber.opens`."""
        anchors = [
            a for a in map(anchor_text, blocks[-2 * self._policy.memory :]) if not self._filler(a)
        ]
        if self._filler(query) or not anchors:
            return False
        vectors = self._embedder.embed([*anchors[-self._policy.memory :], query])
        return bool(np.max(vectors[:-1] @ vectors[-1]) < self._policy.low)

    def segments(self, blocks: Sequence[LogicalBlock]) -> list[int]:
        """See `Adsorber.segments`."""
        informative = [i for i, b in enumerate(blocks) if not self._filler(anchor_text(b))]
        if len(informative) < self._policy.fewest:
            return list(accumulate(int(i > 0 and b.opens) for i, b in enumerate(blocks)))
        vectors = self._embedder.embed([anchor_text(blocks[i]) for i in informative])
        depths = gap_depths(vectors, self._policy.depth_window)
        limit = depths.mean() + self._policy.depth_factor * depths.std()
        starts = {
            informative[gap + 1]
            for gap, depth in enumerate(depths)
            if depth > limit and depth > 0 and depth == depths[max(0, gap - 1) : gap + 2].max()
        }
        segment, labels = 0, []
        for index in range(len(blocks)):
            segment += index in starts
            labels.append(segment)
        return labels

    def _filler(self, text: str) -> bool:
        return len(text.strip()) < self._policy.filler_characters or self._fillers.is_all_of(text)


def anchor_text(block: LogicalBlock) -> str:
    """What stands for a block: its first message, which is the user's in all but the first."""
    return block.records[0].text


def gap_depths(vectors: Vectors, window: int) -> NDArray[np.float64]:
    """Depth of the similarity valley at each gap between rows.

    Args:
        vectors: Unit rows [n, d], n at least 2.
        window: Rows on each side whose means are compared.

    Returns:
        Depths [n - 1], at least 0.
    """
    n = len(vectors)
    similarity = np.array(
        [
            _cosine(vectors[max(0, g - window + 1) : g + 1], vectors[g + 1 : g + 1 + window])
            for g in range(n - 1)
        ]
    )
    left = np.array([_peak(similarity[: g + 1][::-1]) for g in range(n - 1)])
    right = np.array([_peak(similarity[g:]) for g in range(n - 1)])
    depths: NDArray[np.float64] = left + right - 2 * similarity
    return depths


def _cosine(a: Vectors, b: Vectors) -> float:
    x, y = a.mean(axis=0), b.mean(axis=0)
    scale = float(np.linalg.norm(x) * np.linalg.norm(y))
    return float(x @ y) / scale if scale else 0.0


def _peak(values: np.ndarray) -> float:
    """Where the values stop climbing, from the first on."""
    best = float(values[0])
    for value in values[1:]:
        if value < best:
            break
        best = float(value)
    return best
