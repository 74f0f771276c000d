"""Vectors of one embedding space, over any backend: rows of fixed size, no pickle."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.errors import InputError, StorageError
from topicloom.storage.backend import Batch, Rows
from topicloom.storage.chain import link

_KEY = re.compile(r"[0-9a-f]{16}")
_KEY_BYTES = 8
MADE = "000000"
"""Keys of vectors of texts that were made of messages, such as briefs, begin so. A purge takes all
of them, for it is not stored which messages they were made of; they are soon computed again."""


def made_key(text: str) -> str:
    """The key of the vector of a text that was made of messages."""
    return MADE + link(None, {"text": text})[len(MADE) :]


def row_bytes(dimension: int) -> int:
    """The size of a row: a key and a vector of that many numbers."""
    return _row_type(dimension).itemsize


def pack_rows(keys: Sequence[str], vectors: NDArray[np.floating[Any]]) -> bytes:
    """Rows of an 8-byte key (16 hex digits) and d > 0 little-endian float16 of vectors [n, d] each.

    Raises:
        InputError: Keys or shape are wrong.
    """
    if vectors.ndim != 2 or vectors.shape[0] != len(keys) or vectors.shape[1] == 0:
        raise InputError(f"{len(keys)} keys do not go with vectors of shape {vectors.shape}")
    wrong = [key for key in keys if not _KEY.fullmatch(key)]
    if wrong:
        raise InputError(f"the key of a vector is 16 lower-case hex digits, not {wrong[0]!r}")
    rows = np.empty(len(keys), dtype=_row_type(vectors.shape[1]))
    rows["key"] = np.frombuffer(bytes.fromhex("".join(keys)), dtype=f"V{_KEY_BYTES}")
    rows["vector"] = vectors
    return rows.tobytes()


def unpack_rows(rows: bytes, dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """Keys [n] and vectors [n, d] of rows; of a key that comes twice, the last row."""
    table = np.frombuffer(rows, dtype=_row_type(dimension))
    digits = table["key"].tobytes().hex()
    width = 2 * _KEY_BYTES
    newest = {digits[i * width : (i + 1) * width]: i for i in range(len(table))}
    return list(newest), table["vector"][list(newest.values())].astype(np.float32)


def drop_rows(rows: bytes, dimension: int, keys: Collection[str]) -> bytes:
    """Rows, those of some keys left out."""
    table = np.frombuffer(rows, dtype=_row_type(dimension))
    gone = {bytes.fromhex(key) for key in keys}
    stays = np.array([key.tobytes() not in gone for key in table["key"]], dtype=np.bool_)
    return table[stays].tobytes()


class VectorLog:
    """Vectors of one embedding space, by 16-hex-digit key. Safe to use from several threads."""

    def __init__(
        self, batches: Rows[Batch], writing: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Vectors in some batches; `writing` keeps others from writing while it lasts."""
        self._batches = batches
        self._writing = writing
        self._dimension: int | None = None

    def load(self) -> tuple[list[str], NDArray[np.float32]]:
        """Keys [n] without duplicates, and vectors [n, d] rounded to float16; [0, 0] for nothing.

        Raises:
            StorageError: The stored data is not vectors.
        """
        batches = list(self._batches.scan())
        dimensions = sorted({batch.dimension for batch in batches})
        if len(dimensions) > 1:
            raise StorageError(
                f"{self._batches.where(batches[0].key)} and others beside it are vectors of"
                f" different sizes, {dimensions}: delete them, and they are computed again"
            )
        if not batches:
            return [], np.zeros((0, 0), dtype=np.float32)
        [self._dimension] = dimensions
        return unpack_rows(b"".join(batch.rows for batch in batches), self._dimension)

    def append(self, keys: Sequence[str], vectors: NDArray[np.floating[Any]]) -> None:
        """Add vectors [n, d] by their keys [n]; d is the same in every call.

        Raises:
            InputError: Keys or shape are wrong.
            StorageUnavailableError: Nothing can be written there.
        """
        if not len(keys):
            return
        rows = pack_rows(keys, vectors)
        dimension = vectors.shape[1]
        if self._dimension is None:
            self.load()
        if self._dimension not in (None, dimension):
            raise InputError(
                f"what is stored are vectors of {self._dimension} numbers, not of {dimension}: an"
                " embedder that gives others needs another fingerprint"
            )
        with self._writing():
            key = hashlib.sha256(rows).hexdigest()[:32]
            self._batches.append([Batch(key, dimension, rows)])
        self._dimension = dimension

    def remove(self, keys: Collection[str]) -> None:
        """Remove the vectors of some keys; raises as `load` and `append` do."""
        newer: set[str] = set()
        with self._writing():
            for batch in reversed(list(self._batches.scan())):
                own = set(unpack_rows(batch.rows, batch.dimension)[0])
                if not own.isdisjoint(keys):
                    # A batch written again is the newest, and must not outdo what came after it.
                    left = drop_rows(batch.rows, batch.dimension, {*keys, *newer})
                    if left:
                        self._batches.replace([batch._replace(rows=left)])
                    else:
                        self._batches.replace([], remove=[batch.key])
                newer |= own


def _row_type(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("key", f"V{_KEY_BYTES}"), ("vector", "<f2", (dimension,))])
