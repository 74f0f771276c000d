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
from topicloom.perception.boundary.decide import Thresholds
from topicloom.perception.boundary.features import ONLINE_NAMES, VERSION
from topicloom.perception.boundary.lookahead import RETROSPECTIVE_NAMES
from topicloom.perception.boundary.network import Network

PACKAGED = Path(__file__).parent / "boundary.npz"
"""What ships; `boundary.json` beside it says what it is and how well it did."""

MODES = ("online", "retrospective")
"""By what is known when a message arrives, or by the whole conversation."""
NAMES = {"online": ONLINE_NAMES, "retrospective": RETROSPECTIVE_NAMES}
"""Features that the net of each mode reads, in order."""


class Description(BaseModel):
    """What stands beside the numbers."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    features: int
    """`features.VERSION` that the weights are made for."""
    embedder: str
    """Fingerprint of the embedder they are made for."""
    names: dict[str, tuple[str, ...]]
    """Features that each mode reads; checked against `NAMES`."""
    thresholds: dict[str, dict[str, float]]
    """Thresholds of each mode, by granularity."""


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
    path = path or PACKAGED
    beside = path.with_suffix(".json")
    try:
        description = Description.model_validate_json(beside.read_text("utf-8"))
        # Opened here: numpy leaves a file open that turns out to be no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        _check(path, description, embedder)
        return Weights(
            embedder=description.embedder,
            learned=_unpacked(arrays["learned"], arrays["learned_scale"]),
            nets={m: _network(m, arrays) for m in MODES},
            thresholds={m: Thresholds(**description.thresholds[m]) for m in MODES},
        )
    except ValidationError as error:
        problem = error.errors()[0]
        raise ConfigurationError(
            f"{beside} describes no boundary weights: {problem['loc']}: {problem['msg']}"
        ) from error
    except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{path} holds no boundary weights: {error}") from error


def save_weights(path: Path, weights: Weights, figures: Mapping[str, Any]) -> None:
    """Write weights to `path` (`.npz`) and what they are, with their figures, beside it."""
    packed, scale = _packed(weights.learned)
    arrays: dict[str, NDArray[Any]] = {"learned": packed, "learned_scale": scale}
    for mode, net in weights.nets.items():
        arrays[f"{mode}_mean"], arrays[f"{mode}_spread"] = net.mean, net.spread
        arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"] = _packed(net.inner)
        arrays[f"{mode}_outer"] = net.outer
    description = {
        "features": VERSION,
        "embedder": weights.embedder,
        "thresholds": {
            mode: {"auto": t.auto, "fine": t.fine, "coarse": t.coarse}
            for mode, t in weights.thresholds.items()
        },
        **figures,
        "names": {mode: list(NAMES[mode]) for mode in weights.nets},
    }
    np.savez_compressed(path, allow_pickle=False, **arrays)
    text = json.dumps(description, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")


def _check(path: Path, description: Description, embedder: str | None) -> None:
    if description.features != VERSION or description.names != NAMES:
        raise ConfigurationError(
            f"{path} is made for other features (version {description.features}) than these "
            f"(version {VERSION}): train again"
        )
    if embedder is not None and embedder != description.embedder:
        raise ConfigurationError(
            f"{path} is trained on vectors of {description.embedder!r}, not of {embedder!r}: train "
            "with that embedder, or use the default one for boundaries"
        )


def _network(mode: str, arrays: Mapping[str, NDArray[Any]]) -> Network:
    return Network(
        mean=arrays[f"{mode}_mean"],
        spread=arrays[f"{mode}_spread"],
        inner=_unpacked(arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"]),
        outer=arrays[f"{mode}_outer"],
    )


def _packed(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """One byte a weight of [..., rows, columns], with a scale a column: a quarter of the size."""
    scale = np.maximum(np.abs(matrix).max(axis=-2, keepdims=True), 1e-12) / 127
    return np.rint(matrix / scale).astype(np.int8), scale.astype(np.float32)


def _unpacked(packed: NDArray[np.int8], scale: NDArray[np.float32]) -> NDArray[np.float32]:
    return packed.astype(np.float32) * scale
