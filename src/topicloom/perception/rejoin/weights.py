"""The trained weights: two files, numbers without pickle and what they are beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from topicloom.errors import ConfigurationError
from topicloom.perception.rejoin.features import VERSION
from topicloom.perception.rejoin.lexicon import Lexicon
from topicloom.perception.rejoin.network import Network, Scorer

PACKAGED = Path(__file__).parent / "rejoin.npz"
"""What ships; `rejoin.json` beside it says what it is and how well it did."""

_PARTS = ("mean", "spread", "inner", "outer", "line")

Arrays = Mapping[str, NDArray[Any]]


class Description(BaseModel):
    """What stands beside the numbers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    features: int
    """`features.VERSION` that the weights are made for."""
    embedder: str
    """Fingerprint of the embedder they are made for."""
    pair_names: tuple[str, ...]
    """Features of a topic that they read."""
    alone_names: tuple[str, ...]
    """Features of a block that they read."""


@dataclass(frozen=True, slots=True)
class RejoinWeights:
    """Everything that is learned."""

    embedder: str
    """Fingerprint of the embedder they were trained with."""
    lexicon: Lexicon
    """Where words lie."""
    network: Network
    """Scores topics."""


def load_weights(path: Path | None = None, *, embedder: str | None = None) -> RejoinWeights:
    """Read weights.

    Args:
        path: An `.npz` file with its `.json` beside it; None for what ships.
        embedder: Fingerprint of the embedder whose vectors will be given; None checks nothing.

    Raises:
        ConfigurationError: If a file cannot be read or holds something else, or if the weights are
            made for other features or another embedder.
    """
    path = path or PACKAGED
    beside = path.with_suffix(".json")
    try:
        description = Description.model_validate_json(beside.read_text("utf-8"))
        _check(path, description, embedder)
        with np.load(path, allow_pickle=False) as stored:
            return _unpacked(description, {name: stored[name] for name in stored.files})
    except ValidationError as error:
        problem = error.errors()[0]
        raise ConfigurationError(
            f"{beside} describes no rejoining weights: {problem['loc']}: {problem['msg']}"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, IndexError, BadZipFile) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{path} holds no rejoining weights: {error}") from error


def as_stored(weights: RejoinWeights) -> RejoinWeights:
    """Weights as they are after saving and loading: rounded, so that figures are of what ships."""
    description = Description(
        features=VERSION,
        embedder=weights.embedder,
        pair_names=weights.network.pair_names,
        alone_names=weights.network.alone_names,
    )
    return _unpacked(description, _packed(weights))


def save_weights(path: Path, weights: RejoinWeights, figures: Mapping[str, Any]) -> None:
    """Write weights to `path` (`.npz`) and what they are, with their figures, beside it."""
    description = {
        "features": VERSION,
        "embedder": weights.embedder,
        **figures,
        "pair_names": list(weights.network.pair_names),
        "alone_names": list(weights.network.alone_names),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, allow_pickle=False, **_packed(weights))
    text = json.dumps(description, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")


def _packed(weights: RejoinWeights) -> dict[str, NDArray[Any]]:
    table = weights.lexicon.table
    scale = np.maximum(np.abs(table).max(axis=0, initial=0), 1e-12) / 127
    arrays: dict[str, NDArray[Any]] = {
        "columns": weights.lexicon.columns.astype(np.uint16),
        # One byte a weight, with a scale for each column: a quarter of the size.
        "table": np.rint(table / scale).astype(np.int8),
        "scale": scale.astype(np.float32),
    }
    for name, scorer in (("topic", weights.network.topic), ("new", weights.network.new)):
        arrays |= {f"{name}_{part}": getattr(scorer, part) for part in _PARTS}
        for part in ("inner", "outer", "line"):
            arrays[f"{name}_{part}"] = arrays[f"{name}_{part}"].astype(np.float16)
    return arrays


def _check(path: Path, description: Description, embedder: str | None) -> None:
    if description.features != VERSION:
        raise ConfigurationError(
            f"{path} is made for version {description.features} of the rejoining features, this is "
            f"version {VERSION}: train again"
        )
    if embedder is not None and embedder != description.embedder:
        raise ConfigurationError(
            f"{path} is trained on vectors of {description.embedder!r}, not of {embedder!r}: train "
            "with that embedder, or use the default one for rejoining"
        )


def _unpacked(description: Description, arrays: Arrays) -> RejoinWeights:
    table = arrays["table"].astype(np.float32) * arrays["scale"]
    return RejoinWeights(
        embedder=description.embedder,
        lexicon=Lexicon(arrays["columns"].astype(np.int64), table),
        network=Network(
            pair_names=description.pair_names,
            alone_names=description.alone_names,
            topic=_scorer("topic", arrays),
            new=_scorer("new", arrays),
        ),
    )


def _scorer(name: str, arrays: Arrays) -> Scorer:
    return Scorer(**{part: arrays[f"{name}_{part}"].astype(np.float32) for part in _PARTS})
