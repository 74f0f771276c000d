"""Reading and writing many items of a LangGraph store, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem

from topicloom.storage.names import unreserved_name

Namespace = tuple[str, ...]
_PAGE = 500


def label(name: str) -> str:
    """A namespace label for any text: as of `unreserved_name`, but stores join labels with dots."""
    return unreserved_name(name).replace(".", "%2E")


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
    """The namespaces directly below one."""
    depth = len(namespace) + 1
    offset, page = 0, list[Namespace]()
    while not offset or len(page) == _PAGE:
        page = store.list_namespaces(prefix=namespace, max_depth=depth, limit=_PAGE, offset=offset)
        yield from (found for found in map(tuple, page) if found[:-1] == namespace)
        offset += _PAGE
