"""The encoder that ships with the package."""

from __future__ import annotations

from functools import cache

from topicloom.perception.cached import CachedEmbedder
from topicloom.perception.embedder import Embedder
from topicloom.perception.hashing import HashingEmbedder
from topicloom.perception.minilm import MiniLMEmbedder
from topicloom.perception.mixed import MixedEmbedder

_REMEMBERED = 8_192
"""Texts whose vectors are kept in memory: 29 MB."""


@cache
def default_embedder() -> Embedder:
    """MiniLM for Latin text and character hashing for CJK text, in one space; one a process."""
    return CachedEmbedder(MixedEmbedder(MiniLMEmbedder(), HashingEmbedder()), _REMEMBERED)
