"""The boundary model: the probability that a topic begins at a message, online and in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topicloom.boundary.cues import Utterance
from topicloom.boundary.features import WINDOW, band_of, online_features
from topicloom.boundary.lookahead import retrospective_features
from topicloom.boundary.weights import Weights, load_weights
from topicloom.index.embedder import Vectors

Probabilities = NDArray[np.float64]
"""Probability [n] that a topic begins at each message; 1 at the first."""


class BoundaryModel:
    """Tells where topics begin by what is said; pauses are for the caller, who knows the clock.

    Every method takes messages [n], oldest first, and the vectors [n, d] of their bare texts, made
    by the embedder that the weights were trained with (`weights.embedder` is its fingerprint).
    """

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    @classmethod
    def load(cls, path: Path | None = None, *, embedder: str | None = None) -> BoundaryModel:
        """Read a model; see `load_weights` for arguments and errors."""
        return cls(load_weights(path, embedder=embedder))

    def online(self, said: Sequence[Utterance], vectors: Vectors) -> Probabilities:
        """Probabilities by what is known when each message arrives.

        Each is made from its message and the `WINDOW` before it, so the last 25 messages are
        enough for the last probability.
        """
        if not said:
            return np.zeros(0)
        features = online_features(said, band_of(vectors, self.weights.learned))
        return _first(self.weights.nets["online"].probabilities(features))

    def newest(self, said: Sequence[Utterance], vectors: Vectors) -> float:
        """The last of `online`, at a cost that does not grow; there has to be a message."""
        if len(said) == 1:
            return 1.0
        said, vectors = said[-WINDOW - 1 :], vectors[-WINDOW - 1 :]
        band = band_of(vectors, self.weights.learned)
        features = online_features(said, band, first=len(said) - 1)
        return float(self.weights.nets["online"].probabilities(features)[0])

    def retrospective(self, said: Sequence[Utterance], vectors: Vectors) -> Probabilities:
        """Probabilities by all that was said, before and after."""
        if not said:
            return np.zeros(0)
        features = retrospective_features(said, band_of(vectors, self.weights.learned))
        return _first(self.weights.nets["retrospective"].probabilities(features))


def _first(probabilities: Probabilities) -> Probabilities:
    probabilities[0] = 1.0
    return probabilities
