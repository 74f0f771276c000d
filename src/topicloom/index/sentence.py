"""A sentence encoder of one's own choice, through sentence-transformers; BGE-M3 by default."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from topicloom.index.embedder import Vectors, telling_rows, unit_rows
from topicloom.index.pretrained import open_pretrained, readable

_MAX_TOKENS = 512
"""Tokens read of one text. BGE-M3 could read 8,192, at a cost that grows faster than the text."""
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

    def __init__(
        self,
        model: str | Path = "BAAI/bge-m3",
        *,
        device: str | None = None,
        max_tokens: int = _MAX_TOKENS,
        batch_size: int = 16,
    ) -> None:
        """Configure without loading anything; raises ValueError for a number under 1.

        Args:
            model: A folder, or a name on the Hugging Face hub.
            device: Such as `cpu` or `cuda`; None for the best there is.
            max_tokens: Tokens read of one text; at most what the model can.
            batch_size: Most texts in one run of the model.
        """
        if max_tokens < 1 or batch_size < 1:
            raise ValueError(f"need at least 1, got {max_tokens=} and {batch_size=}")
        self._model = model
        self._device = device
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._lock = threading.RLock()

    @property
    def fingerprint(self) -> str:
        """Name of the model, its commit or a hash of its files, and the tokens it reads."""
        return self._loaded[1]

    @cached_property
    def dimension(self) -> int:
        return int(self._encode(["a"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        rows = telling_rows(texts)
        if rows:
            longest = _CHARACTERS * self._max_tokens
            vectors[rows] = self._encode([readable(texts[row], longest) for row in rows])
        return unit_rows(vectors)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            encoder, _ = self._loaded
            return encoder.encode(texts, batch_size=self._batch_size, show_progress_bar=False)

    @cached_property
    def _loaded(self) -> tuple[_Encoder, str]:
        with self._lock:
            if "_loaded" in self.__dict__:
                return self._loaded
            opened = open_pretrained("SentenceTransformer", self._model, self._device)
            encoder = cast("_Encoder", opened.model)
            read = min(encoder.max_seq_length or self._max_tokens, self._max_tokens)
            encoder.max_seq_length = read
            return encoder, f"{opened.fingerprint}/{read}"
