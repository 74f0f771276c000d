"""A sentence encoder of one's own choice, through sentence-transformers; BGE-M3 by default."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol, cast

from topicloom.index.embedder import Vectors, embed_telling
from topicloom.index.pretrained import open_pretrained

_MAX_TOKENS = 512
"""Tokens read of one text. BGE-M3 could read 8,192, at a cost that grows faster than the text."""
_BATCH_SIZE = 16
"""Most texts in one run of the model."""
_CHARACTERS = 16
"""Characters tokenized of a text for a token that may be read."""


class _Encoder(Protocol):
    """What is used of a `sentence_transformers.SentenceTransformer`."""

    max_seq_length: int | None

    def encode(
        self, inputs: Sequence[str], *, batch_size: int, show_progress_bar: bool
    ) -> Vectors: ...


class SentenceTransformerEmbedder:
    """`Embedder` around a model of sentence-transformers. Needs `pip install "topicloom[bge]"`.

    The model is loaded when its fingerprint, its dimension or a vector is asked for; each of them
    raises what `open_pretrained` does. It takes one batch at a time, so that threads may share it.
    """

    def __init__(self, model: str | Path = "BAAI/bge-m3", *, max_tokens: int = _MAX_TOKENS) -> None:
        """Configure without loading anything.

        Args:
            model: A folder, or a name on the Hugging Face hub.
            max_tokens: Tokens read of one text; at most what the model can.
        """
        self._model = model
        self._max_tokens = max_tokens
        self._lock = threading.RLock()

    @property
    def fingerprint(self) -> str:
        """Name of the model, its commit or a hash of its files, and the tokens it reads."""
        return self._loaded[1]

    @cached_property
    def dimension(self) -> int:
        return int(self._encode(["a"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        longest = _CHARACTERS * self._max_tokens
        return embed_telling(texts, self.dimension, longest, self._encode)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            encoder, _ = self._loaded
            return encoder.encode(texts, batch_size=_BATCH_SIZE, show_progress_bar=False)

    @cached_property
    def _loaded(self) -> tuple[_Encoder, str]:
        with self._lock:
            if "_loaded" in self.__dict__:
                return self._loaded
            opened = open_pretrained("SentenceTransformer", self._model)
            encoder = cast("_Encoder", opened.model)
            read = min(encoder.max_seq_length or self._max_tokens, self._max_tokens)
            encoder.max_seq_length = read
            return encoder, f"{opened.fingerprint}/{read}"
