"""The boundary model: small nets over features, their file, and where they see topics begin.

Online it is by what is known when a message arrives, in hindsight by the whole conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Vectors, dot_products
from topicloom.topics.boundary_cues import Utterance
from topicloom.topics.boundary_features import WINDOW, Features, band_of, online_features
from topicloom.topics.boundary_policy import Granularity
from topicloom.topics.retrospective import retrospective_features
from topicloom.topics.similarity import Floats


def unpack(weights: NDArray[np.int8], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """The matrix [..., rows, columns] of one byte a weight, with a scale a column."""
    return weights.astype(np.float32) * scale


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
        inputs = standardise(features, self.mean, self.spread)
        hidden = np.maximum(dot_products(inputs, self.inner[:-1].T) + self.inner[-1], 0)
        odds = (dot_products(hidden, self.outer[:-1]) + self.outer[-1]).astype(np.float64)
        return np.asarray(1 / (1 + np.exp(-odds)), dtype=np.float64)


def standardise(features: Features, mean: Matrix, spread: Matrix) -> Matrix:
    """Features [n, f] in spreads from their mean, each row by its script; unknown ones as 0."""
    script = features.cjk.astype(np.intp)
    scaled = (features.values - mean[script]) / spread[script]
    scaled[scaled != scaled] = 0.0
    return np.minimum(np.maximum(scaled, -_LIMIT), _LIMIT).astype(np.float32)


PACKAGED = Path(__file__).parent / "boundary.npz"
"""What ships; `boundary.json` beside it says what it is and how well it did."""

Probabilities = NDArray[np.float64]
"""Probability [n] that a topic begins at each message; 1 at the first."""


@dataclass(frozen=True, slots=True)
class BoundaryModel:
    """Tells where topics begin by what is said; pauses are for the caller, who knows the clock.

    Every method takes messages [n], oldest first, and the vectors [n, d] of their bare texts, made
    by the embedder that the model was trained with: what ships, by the default one.
    """

    learned: NDArray[np.float32]
    """Linear map [d, k] from the embedder's vectors to the channel `learned`."""
    nets: Mapping[str, Network]
    """One net each for `online`, by what is known when a message arrives, and `retrospective`, by
    the whole conversation."""
    thresholds: Mapping[str, Mapping[Granularity, float]]
    """Probabilities of each net from which on a topic begins, by granularity."""

    def newest(self, said: Sequence[Utterance], vectors: Vectors) -> float:
        """Probability of the last message, at a cost that does not grow; there has to be one."""
        if len(said) == 1:
            return 1.0
        said, vectors = said[-WINDOW - 1 :], vectors[-WINDOW - 1 :]
        features = online_features(said, band_of(vectors, self.learned), first=len(said) - 1)
        return float(self.nets["online"].probabilities(features)[0])

    def retrospective(self, said: Sequence[Utterance], vectors: Vectors) -> Probabilities:
        """Probabilities by all that was said, before and after."""
        if not said:
            return np.zeros(0)
        features = retrospective_features(said, band_of(vectors, self.learned))
        found = self.nets["retrospective"].probabilities(features)
        found[0] = 1.0
        return found


@cache
def load_boundary_model(path: Path = PACKAGED) -> BoundaryModel:
    """Read a model, once in a process; there is a `.json` beside the `.npz` file."""
    thresholds = json.loads(path.with_suffix(".json").read_text("utf-8"))["thresholds"]
    # Opened here: numpy leaves a file open that turns out to be no archive.
    with path.open("rb") as file, np.load(file) as arrays:
        return BoundaryModel(
            learned=unpack(arrays["learned"], arrays["learned_scale"]),
            nets={
                mode: Network(
                    mean=arrays[f"{mode}_mean"],
                    spread=arrays[f"{mode}_spread"],
                    inner=unpack(arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"]),
                    outer=arrays[f"{mode}_outer"],
                )
                for mode in thresholds
            },
            thresholds=thresholds,
        )
