"""Items of a LangGraph store, read and written a page at a time, and rows as such items.

An entry is an item `{"body": <JSON text>, "prev": <ref or null>}` whose key is its ref. A batch of
vectors is an item `{"dimension": d, "rows": <base64>}` whose key is a hash of its rows as they
were added, so the same batch twice is one item.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem
from pydantic import BaseModel, ValidationError

from topicloom.storage.backend import Batch, R, Rows
from topicloom.storage.chain import RawEntry
from topicloom.storage.names import safe_name
from topicloom.storage.vectors import row_bytes

PREFIX = "topicloom"
"""The namespace that everything of ours is under."""
Namespace = tuple[str, ...]
M = TypeVar("M", bound=BaseModel)
_PAGE = 500
_locks: WeakKeyDictionary[BaseStore, RLock] = WeakKeyDictionary()
"""One lock a store: the memory store may not be searched while it is written to."""


def find_lock(store: BaseStore) -> RLock:
    """The lock that everybody takes who reads or writes a store."""
    return _locks.setdefault(store, RLock())


def label(name: str) -> str:
    """A namespace label for any text: as of `safe_name`, but stores join labels with dots."""
    return safe_name(name).replace(".", "%2E")


def read_item(kind: type[M], item: Item) -> M | None:
    """The value of an item, if it is of a kind; None for one that is damaged."""
    try:
        return kind.model_validate(item.value)
    except ValidationError:
        return None


def clean(value: Any) -> Any:
    """JSON data without what PostgreSQL refuses: NUL characters and lone surrogates."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {key: clean(v) for key, v in value.items()}
    return [clean(v) for v in value] if isinstance(value, list | tuple) else value


def items_in(store: BaseStore, namespace: Namespace) -> Iterator[Item]:
    """All items of one namespace, in the store's order; of those written meanwhile, some."""
    offset, page = 0, list[SearchItem]()
    while not offset or len(page) == _PAGE:
        # Nothing expires here: reading it is no write either.
        page = store.search(namespace, limit=_PAGE, offset=offset, refresh_ttl=False)
        # A search matches what is below a namespace too, and with some stores what merely looks
        # like it: nothing of another session may come through.
        yield from (item for item in page if tuple(item.namespace) == namespace)
        offset += _PAGE


def items_at(store: BaseStore, namespace: Namespace, keys: Sequence[str]) -> list[Item]:
    """Those items of a namespace that exist under the given keys."""
    found: list[Item] = []
    for start in range(0, len(keys), _PAGE):
        ops = [GetOp(namespace, key, refresh_ttl=False) for key in keys[start : start + _PAGE]]
        found += [item for item in store.batch(ops) if isinstance(item, Item)]
    return found


def put_items(
    store: BaseStore, namespace: Namespace, values: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write values under their keys in order, never indexed for search, never expiring.

    One call of the store as a rule, more where there are more than a statement can hold.
    """
    _put(store, [PutOp(namespace, k, dict(value), index=False) for k, value in values.items()])


def delete_items(store: BaseStore, namespace: Namespace, keys: Iterable[str]) -> None:
    """Delete items in order; those that are not there count as deleted."""
    _put(store, [PutOp(namespace, key, None) for key in keys])


def _put(store: BaseStore, ops: Sequence[PutOp]) -> None:
    for start in range(0, len(ops), _PAGE):
        store.batch(ops[start : start + _PAGE])


def namespaces_in(store: BaseStore, namespace: Namespace) -> Iterator[Namespace]:
    depth = len(namespace) + 1
    offset, page = 0, list[Namespace]()
    while not offset or len(page) == _PAGE:
        page = store.list_namespaces(prefix=namespace, max_depth=depth, limit=_PAGE, offset=offset)
        yield from (found for found in map(tuple, page) if found[:-1] == namespace)
        offset += _PAGE


class ItemRows(Rows[R]):
    """Rows as items of a namespace where nothing else is."""

    def __init__(self, store: BaseStore, namespace: Namespace) -> None:
        self._store = store
        self._namespace = namespace

    def where(self, key: str) -> str:
        return f"item {key} in namespace {self._namespace}"

    def _items(self) -> Iterator[Item]:
        return items_in(self._store, self._namespace)

    def _put(self, values: Mapping[str, Mapping[str, object]], remove: Iterable[str] = ()) -> None:
        put_items(self._store, self._namespace, values)
        delete_items(self._store, self._namespace, remove)


class EntryItems(ItemRows[RawEntry]):
    """Entries of a chain, an item each."""

    def scan(self, *, bodies: bool = True) -> list[RawEntry]:
        return list(map(_entry_in, self._items()))

    def read(self, keys: Sequence[str]) -> list[RawEntry]:
        return list(map(_entry_in, items_at(self._store, self._namespace, keys)))

    def replace(self, rows: Sequence[RawEntry], remove: Collection[str] = ()) -> None:
        self._put({raw.ref: {"body": raw.body.decode(), "prev": raw.prev} for raw in rows}, remove)


class BatchItems(ItemRows[Batch]):
    """Vectors of one embedding space, an item a batch."""

    def scan(self, *, bodies: bool = True) -> list[Batch]:
        items = sorted(self._items(), key=lambda item: (item.updated_at, item.key))
        return list(map(_batch_in, items))

    def replace(self, rows: Sequence[Batch], remove: Collection[str] = ()) -> None:
        values = {r.key: {"dimension": r.dimension, "rows": _encode(r.rows)} for r in rows}
        self._put(values, remove)


def _entry_in(item: Item) -> RawEntry:
    """The entry in an item; of a damaged item, one that no check lets through."""
    body, prev = item.value.get("body"), item.value.get("prev")
    text = body.encode("utf-8", "replace") if isinstance(body, str) else b""
    return RawEntry(item.key, prev if isinstance(prev, str) else None, text)


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode(item: Item, field: str) -> bytes:
    """The bytes in a field of an item; none if it is damaged."""
    try:
        return base64.b64decode(item.value[field], validate=True)
    except (KeyError, TypeError, ValueError):
        return b""


def _batch_in(item: Item) -> Batch:
    dimension, rows = item.value.get("dimension"), _decode(item, "rows")
    if (
        not rows
        or not isinstance(dimension, int)
        or dimension < 1
        or len(rows) % row_bytes(dimension)
    ):
        return Batch(item.key, 0, b"")
    return Batch(item.key, dimension, rows)
