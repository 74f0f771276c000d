"""Boundary models that were trained here, read with a check, and what they say of each message."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from topicloom import ConfigurationError
from topicloom.lab import (
    ONLINE_NAMES,
    RETROSPECTIVE_NAMES,
    VERSION,
    BoundaryModel,
    Utterance,
    Vectors,
    band_of,
    load_boundary_model,
    online_features,
)

NAMES = {"online": ONLINE_NAMES, "retrospective": RETROSPECTIVE_NAMES}
"""Features that the net of each mode reads, in order."""
MODES = tuple(NAMES)
"""By what is known when a message arrives, or by the whole conversation."""


class BoundaryDescription(BaseModel, frozen=True):
    """The description beside the numbers."""

    features: int
    """Version of the features that the weights are made for."""
    embedder: str
    """Fingerprint of the embedder they are made for."""
    names: dict[str, tuple[str, ...]]
    """Features that each mode reads; checked against `NAMES`."""


def load_trained(path: Path, embedder: str) -> BoundaryModel:
    """Read a model that fits an embedder.

    Args:
        path: An `.npz` file with its `.json` beside it.
        embedder: Fingerprint of the embedder whose vectors will be given.

    Raises:
        ConfigurationError: If a file cannot be read or holds something else, or if the weights are
            made for other features or another embedder.
    """
    try:
        text = path.with_suffix(".json").read_text("utf-8")
        _check(path, BoundaryDescription.model_validate_json(text), embedder)
        return load_boundary_model(path)
    except ConfigurationError:
        raise
    except (OSError, EOFError, ValueError, LookupError, TypeError, BadZipFile) as error:
        raise ConfigurationError(
            "{path} does not contain boundary weights: {error}", path=path, error=error
        ) from error


def _check(path: Path, described: BoundaryDescription, embedder: str) -> None:
    if described.features != VERSION:
        raise ConfigurationError(
            "{path} is made for version {features} of the boundary features, this is version"
            " {version}: train again",
            path=path,
            features=described.features,
            version=VERSION,
        )
    if embedder != described.embedder:
        raise ConfigurationError(
            "{path} is trained on vectors of {trained!r}, not of {embedder!r}: train with that"
            " embedder, or use the default one for boundary weights",
            path=path,
            trained=described.embedder,
            embedder=embedder,
        )
    if described.names != NAMES:
        raise ValueError("they read other features than these: train again")


def judge_online(
    model: BoundaryModel, said: Sequence[Utterance], vectors: Vectors
) -> NDArray[np.float64]:
    """Probability [n] that a topic begins at each message, by what is known when it arrives."""
    features = online_features(said, band_of(vectors, model.learned))
    found = model.nets["online"].probabilities(features)
    found[0] = 1.0
    return found
