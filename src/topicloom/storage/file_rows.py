"""Vectors in files; `files` shows where they are."""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Sequence
from pathlib import Path

from topicloom.storage.backend import Batch, Rows
from topicloom.storage.disk import append_bytes, reachable, read_file, remove_file, replace_file
from topicloom.storage.vectors import row_bytes

_MAGIC = b"topicloom-vec-1\n"
_HEADER = struct.Struct("<16sI12x")


class BatchFile(Rows[Batch]):
    """Vectors of one embedding space: a header that names the dimension, then rows; one batch.

    A row that a crash tore off is ignored and overwritten. Appending does not wait for the disk:
    vectors can be computed again from the messages.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def scan(self, *, bodies: bool = True) -> list[Batch]:
        with reachable(self._path):
            data = read_file(self._path) or b""
        dimension = self._dimension(data)
        if dimension is None:
            return []
        if not dimension:
            return [Batch("", 0, b"")]
        rows = data[_HEADER.size :]
        whole = len(rows) - len(rows) % row_bytes(dimension)
        return [Batch("", dimension, rows[:whole])]

    def append(self, rows: Sequence[Batch]) -> None:
        with reachable(self._path):
            for row in rows:
                begun = self._cut_to_rows(row.dimension)
                append_bytes(self._path, row.rows if begun else _whole(row), fsync=False)

    def replace(self, rows: Sequence[Batch], remove: Collection[str] = ()) -> None:
        with reachable(self._path):
            for row in rows:
                replace_file(self._path, _whole(row), fsync=True)
            if remove:
                remove_file(self._path, fsync=True)

    def where(self, key: str) -> str:
        return str(self._path)

    def _cut_to_rows(self, dimension: int) -> int:
        """Cut off a torn row, or all of another dimension; returns what is left, in bytes."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return 0
        with self._path.open("rb") as file:
            stored = self._dimension(file.read(_HEADER.size))
        body = max(0, size - _HEADER.size)
        whole = size - body % row_bytes(dimension) if stored == dimension else 0
        if whole < size:
            os.truncate(self._path, whole)
        return whole

    def _dimension(self, data: bytes) -> int | None:
        """The dimension in a header, 0 for none of ours; None where it is torn."""
        if len(data) < _HEADER.size:
            return None
        magic, dimension = _HEADER.unpack_from(data)
        return int(dimension) if magic == _MAGIC else 0


def _whole(row: Batch) -> bytes:
    return _HEADER.pack(_MAGIC, row.dimension) + row.rows
