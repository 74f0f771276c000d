"""What weights were trained on, for those who read a figure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path


def in_sample(file: Path, weights: Path) -> Iterator[str]:
    """A remark if the weights have seen a file: figures of it are too good.

    Args:
        file: What was measured.
        weights: Weights with a description beside them that lists `data`, hashes by file name.
    """
    described = json.loads(weights.with_suffix(".json").read_text("utf-8"))
    if sha256(file.read_bytes()).hexdigest() in described.get("data", {}).values():
        beside = weights.with_suffix(".json").name
        yield (
            "In sample: the weights were trained on this file too. Figures out of sample stand in "
            f"{beside}, beside the weights; `topicloom train` makes them."
        )
