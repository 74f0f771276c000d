"""The trained weights of returning topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.boundary.weight_files import (
    Arrays,
    Description,
    pack,
    read_weights,
    unpack,
    write_weights,
)
from topicloom.perception.rejoin.features import VERSION
from topicloom.perception.rejoin.lexicon import Lexicon
from topicloom.perception.rejoin.network import Network, Scorer

PACKAGED = Path(__file__).parent / "rejoin.npz"
"""What ships; `rejoin.json` beside it says what it is and how well it did."""

_PARTS = ("mean", "spread", "inner", "outer", "line")


class RejoinDescription(Description):
    """What stands beside the numbers."""

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
    return read_weights(
        path or PACKAGED,
        "rejoining",
        RejoinDescription,
        _weights,
        version=VERSION,
        embedder=embedder,
    )


def as_stored(weights: RejoinWeights) -> RejoinWeights:
    """Weights as they are after saving and loading: rounded, so that figures are of what ships."""
    return _weights(_description(weights), _arrays(weights))


def save_weights(path: Path, weights: RejoinWeights, figures: Mapping[str, Any]) -> None:
    """Write weights to `path` (`.npz`) and what they are, with their figures, beside it."""
    write_weights(path, _arrays(weights), _description(weights), figures)


def _description(weights: RejoinWeights) -> RejoinDescription:
    return RejoinDescription(
        features=VERSION,
        embedder=weights.embedder,
        pair_names=weights.network.pair_names,
        alone_names=weights.network.alone_names,
    )


def _arrays(weights: RejoinWeights) -> Arrays:
    table, scale = pack(weights.lexicon.table)
    arrays: dict[str, NDArray[Any]] = {
        "columns": weights.lexicon.columns.astype(np.uint16),
        "table": table,
        "scale": scale,
    }
    for name, scorer in (("topic", weights.network.topic), ("new", weights.network.new)):
        arrays |= {f"{name}_{part}": getattr(scorer, part) for part in _PARTS}
        for part in ("inner", "outer", "line"):
            arrays[f"{name}_{part}"] = arrays[f"{name}_{part}"].astype(np.float16)
    return arrays


def _weights(description: RejoinDescription, arrays: Arrays) -> RejoinWeights:
    table = unpack(arrays["table"], arrays["scale"])
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
