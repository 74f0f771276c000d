"""Vectors of one embedding space in one binary file: rows of fixed size, no pickle."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.errors import InputError, StorageError
from topicloom.storage.chain import link
from topicloom.storage.disk import append_bytes, reachable, replace_file

_MAGIC = b"topicloom-vec-1\n"
_HEADER = struct.Struct("<16sI12x")
_KEY = re.compile(r"[0-9a-f]{16}")
_KEY_BYTES = 8
MADE = "000000"
"""Keys of vectors of texts that were made of messages, such as briefs, begin so. A purge takes all
of them, for nobody knows which messages they were made of; they are soon computed again."""


def made_key(text: str) -> str:
    """The key of the vector of a text that was made of messages."""
    return MADE + link(None, {"text": text})[len(MADE) :]


def rows_of(keys: Sequence[str], vectors: NDArray[np.floating[Any]]) -> bytes:
    """Rows of an 8-byte key and d little-endian float16 each, one after the other.

    Args:
        keys: Keys [n], 16 lower-case hex digits each.
        vectors: Array [n, d], d > 0.

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


def vectors_of(rows: bytes, dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """Keys [n] and vectors [n, d] of rows; of a key that comes twice, the last row."""
    table = np.frombuffer(rows, dtype=_row_type(dimension))
    digits = table["key"].tobytes().hex()
    width = 2 * _KEY_BYTES
    newest = {digits[i * width : (i + 1) * width]: i for i in range(len(table))}
    return list(newest), table["vector"][list(newest.values())].astype(np.float32)


def rows_without(rows: bytes, dimension: int, keys: Collection[str]) -> bytes:
    """Rows, those of some keys left out."""
    table = np.frombuffer(rows, dtype=_row_type(dimension))
    gone = {bytes.fromhex(key) for key in keys}
    stays = np.array([key.tobytes() not in gone for key in table["key"]], dtype=np.bool_)
    return table[stays].tobytes()


class VectorFile:
    """A `VectorLog` in a file: a header that names the dimension, then rows.

    A row that a crash tore off is ignored and overwritten. Nothing waits for the disk here:
    vectors can be computed again from the messages.
    """

    def __init__(self, path: Path, writing: Callable[[], AbstractContextManager[None]]) -> None:
        """Vectors in a file.

        Args:
            path: The file, which need not exist.
            writing: Gives a context in which the session's folder exists and nobody else
                appends to the session.
        """
        self._path = path
        self._writing = writing

    def load(self) -> tuple[list[str], NDArray[np.float32]]:
        """Everything stored; see `VectorLog.load`."""
        with reachable(self._path):
            try:
                data = self._path.read_bytes()
            except FileNotFoundError:
                data = b""
        dimension = self._dimension(data)
        if dimension is None:
            return [], np.zeros((0, 0), dtype=np.float32)
        return vectors_of(_whole_rows(data, dimension), dimension)

    def append(self, keys: Sequence[str], vectors: NDArray[np.floating[Any]]) -> None:
        """Add vectors; see `VectorLog.append`."""
        if not len(keys):
            return
        rows = rows_of(keys, vectors)
        dimension = vectors.shape[1]
        with self._writing(), reachable(self._path):
            if self._cut_to_rows(dimension) == 0:
                rows = _HEADER.pack(_MAGIC, dimension) + rows
            append_bytes(self._path, rows, fsync=False)

    def remove(self, keys: Collection[str]) -> None:
        """Remove the vectors of some keys; see `VectorLog.remove`."""
        with self._writing(), reachable(self._path):
            if not self._path.exists():
                return
            data = self._path.read_bytes()
            dimension = self._dimension(data)
            if dimension is None:
                return
            left = rows_without(_whole_rows(data, dimension), dimension, keys)
            if len(left) < len(data) - _HEADER.size:
                replace_file(self._path, data[: _HEADER.size] + left, fsync=True)

    def _cut_to_rows(self, dimension: int) -> int:
        """Cut off a torn row or header; returns what is left, in bytes."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return 0
        with self._path.open("rb") as file:
            stored = self._dimension(file.read(_HEADER.size))
        if stored is not None and stored != dimension:
            raise InputError(
                f"{self._path} holds vectors of {stored} numbers, not of {dimension}: an embedder"
                " that gives others needs another fingerprint"
            )
        body = max(0, size - _HEADER.size)
        whole = 0 if stored is None else size - body % _row_type(stored).itemsize
        if whole < size:
            os.truncate(self._path, whole)
        return whole

    def _dimension(self, data: bytes) -> int | None:
        if len(data) < _HEADER.size:
            return None
        magic, dimension = _HEADER.unpack_from(data)
        if magic != _MAGIC or dimension == 0:
            raise StorageError(
                f"{self._path} is not a file of vectors; delete it, and they are computed again"
            )
        return int(dimension)


def _whole_rows(data: bytes, dimension: int) -> bytes:
    """The rows of a file without the one that a crash tore off."""
    whole = (len(data) - _HEADER.size) // _row_type(dimension).itemsize
    return data[_HEADER.size : _HEADER.size + whole * _row_type(dimension).itemsize]


def _row_type(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("key", f"V{_KEY_BYTES}"), ("vector", "<f2", (dimension,))])
