"""Writing trained weights, as `topicloom.boundary.model` reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.boundary.features import VERSION
from topicloom.boundary.model import NAMES, Weights


def pack(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """One byte a weight of [..., rows, columns], with a scale a column: a quarter of the size."""
    largest = np.abs(matrix).max(axis=-2, keepdims=True, initial=0)
    scale = np.maximum(largest, 1e-12) / 127
    return np.rint(matrix / scale).astype(np.int8), scale.astype(np.float32)


def save_weights(path: Path, weights: Weights, figures: Mapping[str, Any]) -> None:
    """Write weights to `path` (`.npz`), and their description and figures beside it."""
    arrays: dict[str, NDArray[Any]] = {}
    arrays["learned"], arrays["learned_scale"] = pack(weights.learned)
    for mode, net in weights.nets.items():
        arrays[f"{mode}_mean"], arrays[f"{mode}_spread"] = net.mean, net.spread
        arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"] = pack(net.inner)
        arrays[f"{mode}_outer"] = net.outer
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, allow_pickle=False, **arrays)
    described = {
        "features": VERSION,
        "embedder": weights.embedder,
        "thresholds": {mode: asdict(t) for mode, t in weights.thresholds.items()},
        **figures,
        # Long: they stand last, behind what people read.
        "names": {mode: NAMES[mode] for mode in weights.nets},
    }
    text = json.dumps(described, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
