"""Vectors of the examples of kinds of messages, which ship so that the first turn need not wait.

They follow from `idle_*.txt` and `needing_*.txt` in `prompts/cues/`
and from the encoder that ships.
"""

from __future__ import annotations

from topicloom import default_embedder
from topicloom.search.packed_examples import PACKED, load_examples, pack_vectors, read_packed

__all__ = ["PACKED", "is_current", "write"]


def is_current() -> bool:
    """True if the vectors are those of the texts and the encoder as they are now."""
    return read_packed(default_embedder().fingerprint, load_examples()) is not None


def write() -> None:
    """Embed the examples and pack their vectors."""
    embedder, texts = default_embedder(), load_examples()
    pack_vectors(embedder.fingerprint, texts, {kind: embedder.embed(texts[kind]) for kind in texts})
