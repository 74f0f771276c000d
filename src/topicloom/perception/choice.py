"""Choosing the sentence encoder by a name."""

from __future__ import annotations

from topicloom.perception.cached import CachedEmbedder
from topicloom.perception.defaults import default_embedder
from topicloom.perception.embedder import Embedder
from topicloom.perception.hashing import HashingEmbedder
from topicloom.perception.sentence import SentenceTransformerEmbedder

_REMEMBERED = 20_000
"""Texts whose vectors a process remembers, as for the encoder that ships."""


def open_embedder(name: str | None = None) -> Embedder:
    """The encoder that a setting names; nothing is loaded yet.

    Args:
        name: None or `default` for the one that ships; `hashing` for shared characters and
            words, without a model; otherwise a folder with a model of sentence-transformers, or
            its name on the Hugging Face hub, such as `BAAI/bge-m3`.
    """
    if name is None or name.strip() in ("", "default"):
        return default_embedder()
    if name.strip() == "hashing":
        return CachedEmbedder(HashingEmbedder(), _REMEMBERED)
    return CachedEmbedder(SentenceTransformerEmbedder(name.strip()), _REMEMBERED)
