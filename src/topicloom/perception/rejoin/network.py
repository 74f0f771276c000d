"""From features to probabilities: each open topic has a score, and so has a new one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.rejoin.features import Features

Weights = NDArray[np.float32]

_LIMIT = 5.0
"""Most spreads from its mean that a feature may be: what was never seen in training stays sane."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """Small nets, one hidden layer each beside a straight line, over standardised features."""

    mean: Weights
    """Mean of each feature [f]."""
    spread: Weights
    """Standard deviation of each [f]."""
    inner: Weights
    """Weights [nets, f + 1, hidden] into the hidden units; the last row is the bias."""
    outer: Weights
    """Weights [nets, hidden] out of them."""
    line: Weights
    """Weights [nets, f + 1] straight into the score; the last one is the bias."""
    _wide: Weights = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # One product for all nets.
        nets, width, hidden = self.inner.shape
        wide = self.inner.transpose(1, 0, 2).reshape(width, nets * hidden)
        object.__setattr__(self, "_wide", wide.copy())

    def scores(self, shared: Weights, own: Weights | None = None) -> Weights:
        """Scores [nets, n] of rows of features.

        Args:
            shared: The last of the features, which all rows have in common [a].
            own: The others, of each row [n, f - a]; None for one row of none.
        """
        split = len(self.mean) - len(shared)
        own = np.zeros((1, 0), dtype=np.float32) if own is None else own
        rows = standardised(own, self.mean[:split], self.spread[:split])
        common = standardised(shared, self.mean[split:], self.spread[split:])
        wide = self._wide
        within = np.tanh(rows @ wide[:split] + (common @ wide[split:-1] + wide[-1]))
        within *= self.outer.ravel()
        bent = within.reshape(-1, *self.outer.shape).sum(axis=2).T
        straight = self.line[:, :split] @ rows.T
        level = self.line[:, split:-1] @ common + self.line[:, -1]
        return np.asarray(bent + straight + level[:, None], dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Network:
    """Nets whose mean is the probability of each choice."""

    pair_names: tuple[str, ...]
    """Features [p] of a topic that it reads."""
    alone_names: tuple[str, ...]
    """Features [a] of the block that it reads, for topics and for a new one."""
    topic: Scorer
    """Of an open topic, from [p + a] features."""
    new: Scorer
    """Of a new topic, from [a] features."""

    def probabilities(self, features: Features) -> NDArray[np.float64]:
        """Probability [n + 1] of each open topic, and at the end of a new one."""
        known = self.topic.scores(features.alone, features.pairs)
        scores = np.concatenate([known, self.new.scores(features.alone)], axis=1, dtype=np.float64)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray((shares / shares.sum(axis=1, keepdims=True)).mean(axis=0))


def standardised(values: Weights, mean: Weights, spread: Weights) -> Weights:
    """Features [n, f] in spreads from their mean."""
    found = np.minimum(np.maximum((values - mean) / spread, -_LIMIT), _LIMIT)
    return np.asarray(found, dtype=np.float32)
