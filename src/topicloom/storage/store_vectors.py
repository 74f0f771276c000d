"""Vectors of one embedding space in a LangGraph store: a batch an item."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from langgraph.store.base import BaseStore, Item
from numpy.typing import NDArray

from topicloom.errors import InputError, StorageError
from topicloom.storage.store_items import Namespace, delete_items, items_in, put_items
from topicloom.storage.vectors import rows_of, rows_without, vectors_of


class StoreVectors:
    """A `VectorLog` of items `{"dimension": d, "rows": <base64 rows>}`.

    The key of a batch is a hash of its rows as they were appended, so the same batch twice is one
    item.
    """

    def __init__(
        self, store: BaseStore, namespace: Namespace, announce: Callable[[], None]
    ) -> None:
        """Vectors in a namespace of their own.

        Args:
            store: The store.
            namespace: Where nothing else is.
            announce: Called before each write; sees to it that the session is listed.
        """
        self._store = store
        self._announce = announce
        self._namespace = namespace
        self._dimension: int | None = None

    def load(self) -> tuple[list[str], NDArray[np.float32]]:
        """Everything stored; see `VectorLog.load`."""
        batches = self._batches()
        if not batches:
            return [], np.zeros((0, 0), dtype=np.float32)
        dimensions = {_dimension_of(item) for item in batches}
        if len(dimensions) > 1:
            raise StorageError(
                f"namespace {self._namespace} holds vectors of different sizes,"
                f" {sorted(dimensions)}: delete its items, and they are computed again"
            )
        [self._dimension] = dimensions
        return vectors_of(b"".join(map(_rows_in, batches)), self._dimension)

    def append(self, keys: Sequence[str], vectors: NDArray[np.floating[Any]]) -> None:
        """Add vectors; see `VectorLog.append`."""
        if not len(keys):
            return
        rows = rows_of(keys, vectors)
        dimension = vectors.shape[1]
        stored = self._stored_dimension()
        if stored is not None and stored != dimension:
            raise InputError(
                f"namespace {self._namespace} holds vectors of {stored} numbers, not of"
                f" {dimension}: an embedder that gives others needs another fingerprint"
            )
        self._announce()
        key = hashlib.sha256(rows).hexdigest()[:32]
        put_items(self._store, self._namespace, {key: _value(rows, dimension)})
        self._dimension = dimension

    def remove(self, keys: Collection[str]) -> None:
        """Remove the vectors of some keys; see `VectorLog.remove`."""
        newer: set[str] = set()
        for item in self._batches(newest_first=True):
            dimension, rows = _dimension_of(item), _rows_in(item)
            own = set(vectors_of(rows, dimension)[0])
            if not own.isdisjoint(keys):
                # A batch written again is the newest, and must not outdo what came after it.
                left = rows_without(rows, dimension, {*keys, *newer})
                if left:
                    put_items(self._store, self._namespace, {item.key: _value(left, dimension)})
                else:
                    delete_items(self._store, self._namespace, [item.key])
            newer |= own

    def _batches(self, *, newest_first: bool = False) -> list[Item]:
        return sorted(
            items_in(self._store, self._namespace),
            key=lambda item: (item.updated_at, item.key),
            reverse=newest_first,
        )

    def _stored_dimension(self) -> int | None:
        if self._dimension is None:
            for item in self._store.search(self._namespace, limit=1):
                self._dimension = _dimension_of(item)
        return self._dimension


def _value(rows: bytes, dimension: int) -> dict[str, Any]:
    return {"dimension": dimension, "rows": base64.b64encode(rows).decode("ascii")}


def _dimension_of(item: Item) -> int:
    dimension = item.value.get("dimension")
    if not isinstance(dimension, int) or dimension < 1:
        raise _not_vectors(item)
    return dimension


def _rows_in(item: Item) -> bytes:
    try:
        rows = base64.b64decode(item.value["rows"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise _not_vectors(item) from error
    if len(rows) % len(rows_of(["0" * 16], np.zeros((1, _dimension_of(item))))):
        raise _not_vectors(item)
    return rows


def _not_vectors(item: Item) -> StorageError:
    return StorageError(
        f"item {item.key} in namespace {item.namespace} is not a batch of vectors; delete it, and"
        " they are computed again"
    )
