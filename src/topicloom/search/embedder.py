"""The contract of a sentence encoder, and a cache in front of one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import ArrayLike, NDArray

from topicloom.state.safe_text import TextHash, hash_text

Vectors = NDArray[np.float32]
"""One row per text; the rows have unit length or are zero."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is a similarity.

    Implementations are deterministic across processes and safe to call from several threads.
    """

    @property
    def fingerprint(self) -> str:
        """Name and version of the vector space; vectors of two fingerprints never mix."""

    @property
    def dimension(self) -> int:
        """Number of columns."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed each text on its own; one with nothing to embed, such as "", gives a zero row.

        Returns:
            Array [len(texts), dimension] that the caller may keep and change.
        """


def embed_telling(
    texts: Sequence[str], dimension: int, characters: int, encode: Callable[[list[str]], ArrayLike]
) -> Vectors:
    """Vectors [n, dimension] by an encoder, which is given the first `characters` of a text.

    It is not given texts that hold nothing but blanks and nulls.
    """
    vectors = np.zeros((len(texts), dimension), dtype=np.float32)
    rows = [row for row, text in enumerate(texts) if text.replace("\0", " ").strip()]
    if rows:
        vectors[rows] = encode([readable(texts[row], characters) for row in rows])
    return unit_rows(vectors)


def readable(text: str, characters: int) -> str:
    """Cut to what can matter and replace lone surrogates, which have no UTF-8 form."""
    return text[:characters].encode("utf-8", "replace").decode("utf-8")


def unit_rows(vectors: Vectors) -> Vectors:
    """Scale rows [n, d] to unit length; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return np.asarray(vectors / lengths, dtype=np.float32)


def dot_products(rows: Vectors, others: Vectors) -> Vectors:
    """Products [n] of rows [n, d] with a vector [d], or [n, m] with other rows [m, d].

    Not by `@`: from some 500 rows on, or 20 by 20, BLAS shares the work with a thread for each
    core, and all of them spin for longer than they work: 15 to 35 ms of CPU for what takes 1.
    """
    return np.asarray(np.vecdot(rows if others.ndim == 1 else rows[:, None], others))


class FixedEmbedder:
    """`Embedder` whose vectors keep the width that they have when it is made.

    One that has not reached its provider yet does not know its own: what an index makes meanwhile
    fits together, and is zero.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.dimension, self.fingerprint = embedder.dimension, embedder.fingerprint

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = self._embedder.embed(texts)
        if vectors.shape[1] == self.dimension:
            return vectors
        return np.zeros((len(texts), self.dimension), dtype=np.float32)


class CachedEmbedder:
    """`Embedder` that remembers the vectors of the texts used last.

    The same message is compared with every topic and again when it is stored; only its first use
    runs the model. No text is kept.
    """

    def __init__(self, embedder: Embedder, size: int = 4096) -> None:
        """Remember at most `size` texts; raises ValueError if that is none."""
        if size < 1:
            raise ValueError(f"need room for at least 1 text, got {size=}")
        self._embedder = embedder
        self._lock = threading.Lock()
        self._known: LRUCache[TextHash, Vectors] = LRUCache(size)
        self._begun: dict[TextHash, threading.Event] = {}
        self._process = os.getpid()

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def failure(self) -> str:
        """The reason why there are no vectors now; "" if there are."""
        return getattr(self._embedder, "failure", "")

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        if self._process != os.getpid():  # the threads that began something stayed behind the fork
            self._process, self._begun, self._lock = os.getpid(), {}, threading.Lock()
        keys, done = list(map(hash_text, texts)), threading.Event()
        wanted = dict(zip(keys, texts, strict=True))
        with self._lock:
            found = {k: self._known[k] for k in wanted if k in self._known}
            begun = {k: self._begun[k] for k in wanted if k not in found and k in self._begun}
            missing = {k: t for k, t in wanted.items() if k not in found and k not in begun}
            self._begun |= dict.fromkeys(missing, done)
        try:
            found |= self._make(missing)
        finally:
            with self._lock:
                for key in missing:
                    del self._begun[key]
            done.set()
        if begun:  # by another thread: it is not made twice, unless that one fails
            for other in begun.values():
                other.wait()
            found |= zip(begun, self.embed([wanted[k] for k in begun]), strict=True)
        return np.stack([found[key] for key in keys])

    def _make(self, texts: Mapping[TextHash, str]) -> dict[TextHash, Vectors]:
        """Vectors [d] of texts by the model, remembered unless they are zero."""
        if not texts:
            return {}
        # Copies: a view would keep its whole batch.
        vectors = self._embedder.embed(list(texts.values()))
        made = {key: vector.copy() for key, vector in zip(texts, vectors, strict=True)}
        with self._lock:
            self._known.update((key, v) for key, v in made.items() if v.any())
        return made
