"""The trained weights of boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.boundary.decide import Thresholds
from topicloom.perception.boundary.features import ONLINE_NAMES, VERSION
from topicloom.perception.boundary.lookahead import RETROSPECTIVE_NAMES
from topicloom.perception.boundary.network import Network
from topicloom.perception.weights import (
    Arrays,
    Description,
    packed,
    read_weights,
    unpacked,
    write_weights,
)

PACKAGED = Path(__file__).parent / "boundary.npz"
"""What ships; `boundary.json` beside it says what it is and how well it did."""

MODES = ("online", "retrospective")
"""By what is known when a message arrives, or by the whole conversation."""
NAMES = {"online": ONLINE_NAMES, "retrospective": RETROSPECTIVE_NAMES}
"""Features that the net of each mode reads, in order."""


class BoundaryDescription(Description):
    """What stands beside the numbers."""

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
        path: An `.npz` file with its `.json` beside it; None for what ships.
        embedder: Fingerprint of the embedder whose vectors will be given; None checks nothing.

    Raises:
        ConfigurationError: If a file cannot be read or holds something else, or if the weights are
            made for other features or another embedder.
    """
    return read_weights(
        path or PACKAGED,
        "boundary",
        BoundaryDescription,
        _weights,
        version=VERSION,
        embedder=embedder,
    )


def save_weights(path: Path, weights: Weights, figures: Mapping[str, Any]) -> None:
    """Write weights to `path` (`.npz`) and what they are, with their figures, beside it."""
    arrays: dict[str, NDArray[Any]] = {}
    arrays["learned"], arrays["learned_scale"] = packed(weights.learned)
    for mode, net in weights.nets.items():
        arrays[f"{mode}_mean"], arrays[f"{mode}_spread"] = net.mean, net.spread
        arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"] = packed(net.inner)
        arrays[f"{mode}_outer"] = net.outer
    description = BoundaryDescription(
        features=VERSION,
        embedder=weights.embedder,
        thresholds={mode: asdict(t) for mode, t in weights.thresholds.items()},
        names={mode: tuple(NAMES[mode]) for mode in weights.nets},
    )
    write_weights(path, arrays, description, figures)


def _weights(description: BoundaryDescription, arrays: Arrays) -> Weights:
    if description.names != NAMES:
        raise ValueError("they read other features than these: train again")
    return Weights(
        embedder=description.embedder,
        learned=unpacked(arrays["learned"], arrays["learned_scale"]),
        nets={m: _network(m, arrays) for m in MODES},
        thresholds={m: Thresholds(**description.thresholds[m]) for m in MODES},
    )


def _network(mode: str, arrays: Arrays) -> Network:
    return Network(
        mean=arrays[f"{mode}_mean"],
        spread=arrays[f"{mode}_spread"],
        inner=unpacked(arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"]),
        outer=arrays[f"{mode}_outer"],
    )
