"""Vectors of the examples of kinds of messages, which ship so that the first turn need not wait.

They follow from `idle_*.txt` and `needing_*.txt` in `prompts/cues/`
and from the encoder that ships.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topicloom import default_embedder
from topicloom.search.packed_examples import PACKED, digest_examples, load_examples, read_packed

__all__ = ["PACKED", "is_current", "write"]


def is_current() -> bool:
    """True if the vectors are those of the texts and the encoder as they are now."""
    return read_packed(default_embedder().fingerprint, load_examples()) is not None


def write() -> None:
    """Embed the examples; pack each vector in steps of a 127th of its largest number."""
    embedder, texts = default_embedder(), load_examples()
    packed: dict[str, Any] = {"of": np.array(digest_examples(embedder.fingerprint, texts))}
    for kind, examples in texts.items():
        rows = embedder.embed(examples)
        steps = np.abs(rows).max(axis=1, keepdims=True) / 127
        packed[kind] = np.rint(rows / steps).astype(np.int8)
        packed[f"{kind}_steps"] = steps.astype(np.float32)
    np.savez_compressed(PACKED, **packed)
