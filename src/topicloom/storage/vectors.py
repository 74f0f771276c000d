"""Vectors of one embedding space, over any backend: rows of fixed size, no pickle."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.errors import InputError
from topicloom.storage.backend import Batch, Rows
from topicloom.storage.chain import link

_log = logging.getLogger("topicloom.storage")
_log.addHandler(logging.NullHandler())
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
    return _KEY_BYTES + 2 * dimension


def pack_rows(keys: Sequence[str], vectors: NDArray[np.floating[Any]]) -> bytes:
    """Rows of an 8-byte key (16 hex digits) and d > 0 little-endian float16 of vectors [n, d] each.

    Raises:
        InputError: Keys or shape are wrong.
    """
    if vectors.ndim != 2 or vectors.shape[0] != len(keys) or vectors.shape[1] == 0:
        raise InputError(
            "{keys} keys do not match vectors of shape {shape}", keys=len(keys), shape=vectors.shape
        )
    wrong = [key for key in keys if not _KEY.fullmatch(key)]
    if wrong:
        raise InputError(
            "the key of a vector is 16 lower-case hex digits, not {key!r}", key=wrong[0]
        )
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
    """Vectors of one embedding space, by 16-hex-digit key. Safe to use from several threads.

    A cache: what is damaged, of another size or out of reach counts as not there, and what cannot
    be written is done without; the log `topicloom.storage` says so.
    """

    def __init__(
        self, batches: Rows[Batch], writing: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Vectors in some batches; `writing` keeps others from writing while it lasts."""
        self._batches = batches
        self._writing = writing
        self._dimension: int | None = None

    def load(self, dimension: int | None = None) -> tuple[list[str], NDArray[np.float32]]:
        """Keys [n] without duplicates, and vectors [n, d] rounded to float16; [0, 0] for nothing.

        Those of `dimension` numbers, or of as many as the newest has.
        """
        batches = []
        try:
            batches = [batch for batch in self._batches.scan() if batch.dimension]
        except Exception:  # noqa: BLE001 - any fault of a backend: they are made again
            _log.warning("vectors cannot be read; they are made again", exc_info=True)
        wanted = dimension or (batches[-1].dimension if batches else 0)
        rows = b"".join(batch.rows for batch in batches if batch.dimension == wanted)
        if not rows:
            return [], np.zeros((0, 0), dtype=np.float32)
        keys, vectors = unpack_rows(rows, wanted)
        finite = np.flatnonzero(np.isfinite(vectors).all(axis=1))
        if len(finite) == len(keys):
            return keys, vectors
        return [keys[row] for row in finite], vectors[finite]

    def append(
        self,
        keys: Sequence[str],
        vectors: NDArray[np.floating[Any]],
        among: AbstractContextManager[Collection[str]] | None = None,
    ) -> None:
        """Add vectors [n, d] by their keys [n]; those of another d give way.

        With `among`, only those of the keys that it gives, which hold for as long as it lasts; none
        of them, and nothing is written or created.

        Raises:
            InputError: Keys or shape are wrong.
        """
        if not len(keys):
            return
        rows, dimension = pack_rows(keys, vectors), vectors.shape[1]
        try:
            with nullcontext(keys) if among is None else among as kept:
                self._append(drop_rows(rows, dimension, set(keys).difference(kept)), dimension)
        except Exception:  # noqa: BLE001 - any fault of a backend: they are made again
            _log.warning("vectors cannot be kept; they are made again", exc_info=True)

    def _append(self, rows: bytes, dimension: int) -> None:
        if not rows:
            return
        fresh = Batch(hashlib.sha256(rows).hexdigest()[:32], dimension, rows)
        with self._writing():
            if self._dimension != dimension:
                known = self._batches.scan()
                stale = [batch.key for batch in known if batch.dimension != dimension]
                self._batches.replace([], remove=stale)
            self._batches.append([fresh])
        self._dimension = dimension

    def remove(self, keys: Collection[str]) -> None:
        """Remove the vectors of some keys, all that were made of messages, and what is damaged.

        Raises:
            StorageUnavailableError: Nothing can be read or written there.
        """
        newer: set[str] = set()
        with self._writing():
            for batch in reversed(list(self._batches.scan())):
                if not batch.rows:
                    self._batches.replace([], remove=[batch.key])
                    continue
                own = set(unpack_rows(batch.rows, batch.dimension)[0])
                gone = {key for key in own if key in keys or key.startswith(MADE)}
                if gone:
                    # A batch written again is the newest, and must not outdo what came after it.
                    left = drop_rows(batch.rows, batch.dimension, gone | newer)
                    if left:
                        self._batches.replace([batch._replace(rows=left)])
                    else:
                        self._batches.replace([], remove=[batch.key])
                newer |= own


def _row_type(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("key", f"V{_KEY_BYTES}"), ("vector", "<f2", (dimension,))])
