"""A small net over features: its output is the probability that a topic begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.boundary.features import Features
from topicloom.perception.boundary.lags import Floats

_LIMIT = 4.0
"""Most spreads from its mean that a feature may be: what was never seen in training stays sane."""

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Network:
    """One hidden layer over standardised features.

    Features are standardised by the script of the message, since similarities of CJK text and of
    other text live on different scales; an unknown feature is taken to be average.
    """

    mean: Matrix
    """Mean of each feature [2, f] over other messages, and over CJK messages."""
    spread: Matrix
    """Standard deviation of each [2, f]."""
    inner: Matrix
    """Weights [f + 1, hidden] into the hidden units; the last row is the bias."""
    outer: Matrix
    """Weights [hidden + 1] into the log odds; the last one is the bias."""

    def probabilities(self, features: Features) -> Floats:
        """Probability [n] of each message."""
        inputs = standardised(features, self.mean, self.spread)
        hidden = np.maximum(inputs @ self.inner[:-1] + self.inner[-1], 0)
        odds = (hidden @ self.outer[:-1] + self.outer[-1]).astype(np.float64)
        return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


def standardised(features: Features, mean: Matrix, spread: Matrix) -> Matrix:
    """Features [n, f] in spreads from their mean, each row by its script; unknown ones as 0."""
    script = features.cjk.astype(np.intp)
    scaled = (features.values - mean[script]) / spread[script]
    scaled[scaled != scaled] = 0.0
    return np.minimum(np.maximum(scaled, -_LIMIT), _LIMIT).astype(np.float32)


def mixed(parts: Sequence[tuple[float, Matrix, Matrix]]) -> tuple[Matrix, Matrix]:
    """The weights of one net whose log odds are the weighted sum of those of several.

    Args:
        parts: Share of each net, and its weights as of `Network.inner` and `Network.outer`.
    """
    bias = sum(share * float(outer[-1]) for share, _, outer in parts)
    outer = np.concatenate([*(share * outer[:-1] for share, _, outer in parts), [bias]])
    return np.hstack([inner for _, inner, _ in parts]), outer.astype(np.float32)
