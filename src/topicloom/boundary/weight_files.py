"""Files of trained weights: numbers without pickle, and what they are beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from topicloom.errors import ConfigurationError

Arrays = Mapping[str, NDArray[Any]]


class Description(BaseModel):
    """What stands beside the numbers; a kind of weights adds to it what it needs."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    features: int
    """Version of the features that the weights are made for."""
    embedder: str
    """Fingerprint of the embedder they are made for."""


D = TypeVar("D", bound=Description)
W = TypeVar("W")


def read_weights(
    path: Path,
    kind: str,
    description: type[D],
    build: Callable[[D, Arrays], W],
    *,
    version: int,
    embedder: str | None,
) -> W:
    """Read weights.

    Args:
        path: An `.npz` file with its `.json` beside it.
        kind: What the weights are for, for errors: `boundary`.
        description: What the `.json` holds.
        build: Makes the weights of both; what it finds wrong it may raise as a KeyError, a
            TypeError or a ValueError.
        version: Version of the features that they have to be made for.
        embedder: Fingerprint of the embedder whose vectors will be given; None checks nothing.

    Raises:
        ConfigurationError: If a file cannot be read or holds something else, or if the weights are
            made for other features or another embedder.
    """
    beside = path.with_suffix(".json")
    try:
        described = description.model_validate_json(beside.read_text("utf-8"))
        _check(path, kind, described, version, embedder)
        # Opened here: numpy leaves a file open that turns out to be no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return build(described, {name: stored[name] for name in stored.files})
    except ConfigurationError:
        raise
    except ValidationError as error:
        problem = error.errors()[0]
        raise ConfigurationError(
            f"{beside} describes no {kind} weights: {problem['loc']}: {problem['msg']}"
        ) from error
    except (OSError, EOFError, ValueError, LookupError, TypeError, BadZipFile) as error:
        raise ConfigurationError(f"{path} holds no {kind} weights: {error}") from error


def write_weights(
    path: Path, arrays: Arrays, description: Description, figures: Mapping[str, Any]
) -> None:
    """Write weights to `path` (`.npz`) and what they are, with their figures, beside it."""
    described = description.model_dump(mode="json")
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, allow_pickle=False, **arrays)
    # Lists of names are long: they stand last, behind what people read.
    lists = {k: v for k, v in described.items() if k.endswith("names")}
    text = json.dumps({**described, **figures, **lists}, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")


def pack(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """One byte a weight of [..., rows, columns], with a scale a column: a quarter of the size."""
    largest = np.abs(matrix).max(axis=-2, keepdims=True, initial=0)
    scale = np.maximum(largest, 1e-12) / 127
    return np.rint(matrix / scale).astype(np.int8), scale.astype(np.float32)


def unpack(weights: NDArray[np.int8], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    """The matrix of `pack`, rounded."""
    return weights.astype(np.float32) * scale


def _check(
    path: Path, kind: str, description: Description, version: int, embedder: str | None
) -> None:
    if description.features != version:
        raise ConfigurationError(
            f"{path} is made for version {description.features} of the {kind} features, this is "
            f"version {version}: train again"
        )
    if embedder is not None and embedder != description.embedder:
        raise ConfigurationError(
            f"{path} is trained on vectors of {description.embedder!r}, not of {embedder!r}: train "
            f"with that embedder, or use the default one for {kind} weights"
        )
