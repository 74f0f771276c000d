"""The boundary model: small nets over features, their file, and where they see topics begin.

Online it is by what is known when a message arrives, in hindsight by the whole conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from topicloom.errors import ConfigurationError
from topicloom.search.embedder import Vectors, dot_products
from topicloom.topics.boundary_cues import Utterance
from topicloom.topics.boundary_features import (
    ONLINE_NAMES,
    VERSION,
    WINDOW,
    Features,
    band_of,
    online_features,
)
from topicloom.topics.boundary_policy import Thresholds
from topicloom.topics.retrospective import RETROSPECTIVE_NAMES, retrospective_features
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

MODES = ("online", "retrospective")
"""By what is known when a message arrives, or by the whole conversation."""
NAMES = {"online": ONLINE_NAMES, "retrospective": RETROSPECTIVE_NAMES}
"""Features that the net of each mode reads, in order."""


class BoundaryDescription(BaseModel, frozen=True):
    """The description beside the numbers."""

    features: int
    """Version of the features that the weights are made for."""
    embedder: str
    """Fingerprint of the embedder they are made for."""
    thresholds: dict[str, dict[str, float]]
    """Thresholds of each mode, by granularity."""
    names: dict[str, tuple[str, ...]]
    """Features that each mode reads; checked against `NAMES`."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Everything that is learned."""

    embedder: str
    """Fingerprint of the embedder they were trained with."""
    learned: NDArray[np.float32]
    """Linear map [d, k] from the embedder's vectors to the channel `learned`."""
    nets: Mapping[str, Network]
    """One net a mode."""
    thresholds: Mapping[str, Thresholds]
    """Thresholds a mode."""


def load_weights(path: Path | None = None, *, embedder: str | None = None) -> Weights:
    """Read weights.

    Args:
        path: An `.npz` file with its `.json` beside it; those that ship by default.
        embedder: Fingerprint of the embedder whose vectors will be given; None checks nothing.

    Raises:
        ConfigurationError: If a file cannot be read or holds something else, or if the weights are
            made for other features or another embedder.
    """
    path = path or PACKAGED
    description = path.with_suffix(".json")
    try:
        described = BoundaryDescription.model_validate_json(description.read_text("utf-8"))
        _check(path, described, embedder)
        # Opened here: numpy leaves a file open that turns out to be no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return _weights(described, {name: stored[name] for name in stored.files})
    except ConfigurationError:
        raise
    except (OSError, EOFError, ValueError, LookupError, TypeError, BadZipFile) as error:
        raise ConfigurationError(
            "{path} does not contain boundary weights: {error}", path=path, error=error
        ) from error


def _check(path: Path, described: BoundaryDescription, embedder: str | None) -> None:
    if described.features != VERSION:
        raise ConfigurationError(
            "{path} is made for version {features} of the boundary features, this is version"
            " {version}: train again",
            path=path,
            features=described.features,
            version=VERSION,
        )
    if embedder is not None and embedder != described.embedder:
        raise ConfigurationError(
            "{path} is trained on vectors of {trained!r}, not of {embedder!r}: train with that"
            " embedder, or use the default one for boundary weights",
            path=path,
            trained=described.embedder,
            embedder=embedder,
        )


def _weights(description: BoundaryDescription, arrays: Mapping[str, NDArray[Any]]) -> Weights:
    if description.names != NAMES:
        raise ValueError("they read other features than these: train again")
    return Weights(
        embedder=description.embedder,
        learned=unpack(arrays["learned"], arrays["learned_scale"]),
        nets={
            mode: Network(
                mean=arrays[f"{mode}_mean"],
                spread=arrays[f"{mode}_spread"],
                inner=unpack(arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"]),
                outer=arrays[f"{mode}_outer"],
            )
            for mode in MODES
        },
        thresholds={m: Thresholds(**description.thresholds[m]) for m in MODES},
    )


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
