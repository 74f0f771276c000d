"""Sessions in any LangGraph store: PostgreSQL for many machines, memory for tests.

An entry's namespace is `PREFIX`, the session and the chain. Its body is text and not an object,
because databases change objects: PostgreSQL reorders keys, rewrites numbers, and refuses NUL
characters and lone surrogates. In SQL, `(value->>'body')::jsonb` reads most of them.

Labels are made by `store_items.label`, which puts `%` only before hex digits. Labels of our own
cannot be mistaken for any: `%sessions` lists the sessions, `%vectors-<fingerprint>` holds vectors.
The rows are described in `store_items`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from langgraph.store.base import BaseStore, Item

from topicloom.errors import SessionBusyError, StorageError
from topicloom.state.session import FORMAT, check_format
from topicloom.storage.backend import Backend, Batch, Rows
from topicloom.storage.base import Storage
from topicloom.storage.store_items import (
    PREFIX,
    BatchItems,
    EntryItems,
    Namespace,
    delete_items,
    items_at,
    items_in,
    label,
    namespaces_in,
    put_items,
)

SESSIONS, VECTORS = (PREFIX, "%sessions"), "%vectors-"


class StoreStorage(Storage):
    """A `Storage` in a store. What the store's driver raises passes through as it is."""

    def __init__(self, store: BaseStore) -> None:
        """Sessions in a store that is set up; it is never closed here."""
        super().__init__()
        self._store = store
        self._held: set[str] = set()
        self._mutex = Lock()

    def backend(self, session: str) -> StoreBackend:
        return StoreBackend(session, self._store)

    def sessions(self) -> list[str]:
        listed = items_in(self._store, SESSIONS)
        return sorted({_read_name(item) for item in listed})

    @contextmanager
    def lock(self, session: str) -> Iterator[None]:
        """Hold a session within this storage object; see `Storage.lock`.

        Other processes and machines are not locked out: a store has no locks. Nothing breaks
        without: appends of two processes become two branches.
        """
        with self._mutex:
            if session in self._held:
                raise SessionBusyError(
                    "session {session!r} is in use in this process", session=session
                )
            self._held.add(session)
        try:
            yield
        finally:
            with self._mutex:
                self._held.remove(session)


class StoreBackend(Backend):
    """One session in a store."""

    def __init__(self, session: str, store: BaseStore) -> None:
        super().__init__(session)
        self._store = store
        self._label = label(session)
        self._has_info = False

    def entries(self, chain: str) -> EntryItems:
        return EntryItems(self._store, self._below(label(chain)))

    def batches(self, space: str) -> BatchItems:
        return BatchItems(self._store, self._below(f"{VECTORS}{label(space)}"))

    def spaces(self) -> Iterable[Rows[Batch]]:
        found = namespaces_in(self._store, (PREFIX, self._label))
        own = [namespace for namespace in found if namespace[-1].startswith(VECTORS)]
        return [BatchItems(self._store, namespace) for namespace in own]

    @contextmanager
    def lock(self, *, create: bool) -> Iterator[None]:
        """Keep other threads of this process from writing; see `Backend.lock`.

        Other machines are not locked out. Entries are keyed by their hashes, so what two write at
        once is there afterwards.
        """
        with self.mutex:
            if create:
                self._write_info()
            yield

    def remove(self) -> None:
        for namespace in list(namespaces_in(self._store, (PREFIX, self._label))):
            keys = [item.key for item in items_in(self._store, namespace)]
            delete_items(self._store, namespace, keys)
        delete_items(self._store, SESSIONS, [self._label])
        self._has_info = False

    def sweep(self, chain: str, *, torn: bool = False) -> None:
        """Nothing: a store has no item half-written."""

    def _below(self, name: str) -> Namespace:
        return (PREFIX, self._label, name)

    def _write_info(self) -> None:
        if self._has_info:
            return
        found = items_at(self._store, SESSIONS, [self._label])
        for item in found:
            check_format(f"item {item.key} in namespace {SESSIONS}", item.value.get("format"))
        if not found:
            # As JSON text, like bodies: a name may hold what a database refuses.
            info = {"name": json.dumps(self.session), "format": FORMAT}
            put_items(self._store, SESSIONS, {self._label: info})
        self._has_info = True


def _read_name(item: Item) -> str:
    try:
        name = json.loads(item.value["name"])
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(
            "item {key} in namespace {namespace} names no session",
            key=item.key,
            namespace=item.namespace,
        ) from error
    return str(name)
