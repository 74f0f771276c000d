"""A sentence encoder of one's own choice, through sentence-transformers; BGE-M3 by default."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from topicloom.index.embedder import Vectors, telling_rows, unit_rows
from topicloom.index.pretrained import ModelSource, open_pretrained, readable

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


@dataclass(frozen=True, slots=True)
class _Loaded:
    encoder: _Encoder
    dimension: int
    fingerprint: str


class SentenceTransformerEmbedder:
    """`Embedder` around a model of sentence-transformers. Needs `pip install "topicloom[bge]"`.

    The model is loaded when its fingerprint, its dimension or a vector is asked for. It takes
    one batch at a time, so that threads may share it.
    """

    def __init__(
        self,
        model: str | Path = "BAAI/bge-m3",
        *,
        revision: str | None = None,
        device: str | None = None,
        max_tokens: int = _MAX_TOKENS,
        batch_size: int = 16,
        local_only: bool = False,
    ) -> None:
        """Configure without loading anything.

        Args:
            model: A folder, or a name on the Hugging Face hub.
            revision: Commit, branch or tag on the hub; None for its main branch.
            device: Such as `cpu` or `cuda`; None for the best there is.
            max_tokens: Tokens read of one text; at most what the model can.
            batch_size: Most texts in one run of the model.
            local_only: Whether a hub name may only be taken from the cache on disk.

        Raises:
            ValueError: `max_tokens` or `batch_size` is under 1.
        """
        if max_tokens < 1 or batch_size < 1:
            raise ValueError(f"need at least 1, got {max_tokens=} and {batch_size=}")
        self._source = ModelSource(model, revision=revision, local_only=local_only)
        self._device = device
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def fingerprint(self) -> str:
        """Name of the model, its commit or a hash of its files, and the tokens it reads.

        Raises:
            ConfigurationError: The extra `bge` is not installed.
            UnknownModelError: The model cannot be loaded.
        """
        return self._load().fingerprint

    @property
    def dimension(self) -> int:
        """Number of columns; raises what `fingerprint` does."""
        return self._load().dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed each text on its own; see `Embedder.embed`. Raises what `fingerprint` does."""
        loaded = self._load()
        vectors = np.zeros((len(texts), loaded.dimension), dtype=np.float32)
        rows = telling_rows(texts)
        if rows:
            cut = [readable(texts[row], _CHARACTERS * self._max_tokens) for row in rows]
            with self._lock:
                vectors[rows] = loaded.encoder.encode(
                    cut, batch_size=self._batch_size, show_progress_bar=False
                )
        return unit_rows(vectors)

    def _load(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._open()
            return self._loaded

    def _open(self) -> _Loaded:
        opened = open_pretrained(
            "SentenceTransformer", self._source, extra="bge", device=self._device
        )
        encoder = cast("_Encoder", opened.model)
        read = min(encoder.max_seq_length or self._max_tokens, self._max_tokens)
        encoder.max_seq_length = read
        columns = encoder.encode(["a"], batch_size=1, show_progress_bar=False).shape[1]
        return _Loaded(encoder, columns, f"{opened.fingerprint}/{read}")
