"""Sessions in any LangGraph store: PostgreSQL for many machines, memory for tests.

Each entry is one item. Its namespace is the prefix, the session and the chain; its key is the
entry's ref; its value is `{"body": <JSON text>, "prev": <ref or null>}`. The body is text and
not an object, because databases change objects: PostgreSQL reorders keys, rewrites numbers, and
refuses NUL characters and lone surrogates. In SQL, `(value->>'body')::jsonb` reads most of them.

Labels are made by `store_items.label`, which puts `%` only before hex digits. Labels of our own
cannot be mistaken for any: `%sessions` lists the sessions, `%vectors-<fingerprint>` holds vectors,
`%archived-<chain>` what was archived of a chain (`store_archive`). A chain is its own items and the
archived ones together, and an entry that stands in both is one entry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from langgraph.store.base import BaseStore, Item

from topicloom.errors import ConfigurationError, SessionBusyError, StorageError
from topicloom.storage.base import SessionLog, VectorLog
from topicloom.storage.bodies import DEFAULT_BYTES, BodyCache
from topicloom.storage.cards import ArchiveCard
from topicloom.storage.chain import RawEntry
from topicloom.storage.log import ChainLog
from topicloom.storage.shelf import Shelf
from topicloom.storage.store_archive import StoreArchive
from topicloom.storage.store_chain import StoreChain
from topicloom.storage.store_items import Namespace, items_in, label, namespaces_in, put_items
from topicloom.storage.store_vectors import StoreVectors

_SESSIONS, _VECTORS, _ARCHIVED = "%sessions", "%vectors-", "%archived-"
_OPEN_SESSIONS = 64


class StoreStorage:
    """A `Storage` in a store. What the store's driver raises passes through as it is."""

    def __init__(
        self,
        store: BaseStore,
        *,
        prefix: tuple[str, ...] = ("topicloom",),
        cache_bytes: int = DEFAULT_BYTES,
    ) -> None:
        """Sessions in a store.

        Args:
            store: A store that is set up; it is never closed here.
            prefix: Namespace that everything is put under.
            cache_bytes: Memory for bodies, over all sessions.

        Raises:
            ConfigurationError: The prefix cannot be a namespace.
        """
        if not prefix or not all(prefix) or any("." in part or "\0" in part for part in prefix):
            raise ConfigurationError(
                f"{prefix!r} cannot be the prefix of a namespace: its parts may not be empty, nor"
                " have a dot or NUL in them"
            )
        self._store = store
        self._prefix = prefix
        self._cache = BodyCache(cache_bytes)
        self._logs = Shelf(self._make, _OPEN_SESSIONS)
        self._held: set[str] = set()
        self._mutex = Lock()

    def open(self, session: str) -> SessionLog:
        """The log of a session; see `Storage.open`."""
        return self._logs.get(session)

    def sessions(self) -> list[str]:
        """Names of all sessions that hold anything; see `Storage.sessions`."""
        cards = items_in(self._store, (*self._prefix, _SESSIONS))
        return sorted({_name_on(card) for card in cards})

    @contextmanager
    def lock(self, session: str) -> Iterator[None]:
        """Hold a session within this storage object; see `Storage.lock`.

        Other processes and machines are not held off: a store has no locks. Nothing breaks
        without: appends of two processes become two branches.
        """
        with self._mutex:
            if session in self._held:
                raise SessionBusyError(f"session {session!r} is in use in this process")
            self._held.add(session)
        try:
            yield
        finally:
            with self._mutex:
                self._held.remove(session)

    def _make(self, session: str) -> StoreLog:
        return StoreLog(session, self._store, self._prefix, bodies=self._cache)


class StoreLog(ChainLog):
    """The log of one session in a store."""

    def __init__(
        self, session: str, store: BaseStore, prefix: Namespace, *, bodies: BodyCache
    ) -> None:
        """A log; made by `StoreStorage.open`."""
        super().__init__(session, bodies)
        self._store = store
        self._prefix = prefix
        self._label = label(session)
        self._has_card = False
        self._chains: dict[str, StoreChain] = {}

    def entries(self, chain: str) -> Mapping[str, str | None]:
        """The ref before each ref of a chain; see `SessionLog.entries`."""
        with self._mutex:
            return self._chain(chain).refs()

    def restore(self, chain: str) -> None:
        """Move a chain back out of the archive; see `SessionLog.restore`."""
        with self._mutex:
            self._chain(chain).restore()

    def archived(self, chain: str) -> ArchiveCard | None:
        """What an archived chain is filed under; see `SessionLog.archived`."""
        with self._mutex:
            return self._chain(chain).archive.card()

    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space; see `SessionLog.vectors`."""
        return self._vectors_at((*self._prefix, self._label, f"{_VECTORS}{label(fingerprint)}"))

    def _append(self, chain: str, head: str | None, entries: Sequence[RawEntry]) -> None:
        items = self._chain(chain)
        new = items.news(head, entries)
        if head is not None:
            self._prev(chain, head)
        if new:
            self._write_card()
            items.put(new)

    def _archive(self, chain: str, month: str, summary: Mapping[str, Any]) -> bool:
        return self._chain(chain).move_to_archive(month, summary)

    def _purge(
        self, chain: str, tombstones: Mapping[str, RawEntry], summary: Mapping[str, Any]
    ) -> int:
        return self._chain(chain).purge(tombstones, summary)

    def _all_vectors(self) -> Iterable[VectorLog]:
        found = namespaces_in(self._store, (*self._prefix, self._label))
        own = [namespace for namespace in found if namespace[-1].startswith(_VECTORS)]
        return [self._vectors_at(namespace) for namespace in own]

    def _vectors_at(self, namespace: Namespace) -> VectorLog:
        return StoreVectors(self._store, namespace, self._write_card)

    def _prev(self, chain: str, ref: str) -> str | None:
        found = self._chain(chain).prev(ref)
        if found is None:
            raise self._missing(chain, ref)
        return found[0]

    def _fetch(self, chain: str, refs: Sequence[str]) -> Iterable[RawEntry]:
        items = self._chain(chain)
        found = items.items(refs)
        there = {raw.ref for raw in found}
        absent = [ref for ref in refs if ref not in there]
        if absent:
            with self._mutex:
                found += items.archived(absent)
                lost = items.archive.lost
            there = {raw.ref for raw in found}
            for ref in absent:
                if ref not in there and ref not in lost:
                    raise self._missing(chain, ref)
            found += [RawEntry(ref, lost[ref], b"") for ref in absent if ref not in there]
        return found

    def _mismatch(self, chain: str, ref: str) -> str:
        items = self._chain(chain)
        if ref in items.archive.lost:
            return f"entry {ref} of chain {chain!r} cannot be read: {items.archive.damage}"
        return (
            f"item {ref} in namespace {items.namespace} is not what was written. If you"
            " changed it, change it back: storage is append-only. Otherwise restore it from a"
            " backup"
        )

    def _chain(self, chain: str) -> StoreChain:
        items = self._chains.get(chain)
        if items is None:
            own = (*self._prefix, self._label)
            packed = (*own, f"{_ARCHIVED}{label(chain)}")
            items = StoreChain(
                self._store,
                (*own, label(chain)),
                StoreArchive(self._store, packed, self._reports),
                lambda raw: self._bodies.put(self.session, chain, raw.ref, raw.body),
            )
            items = self._chains.setdefault(chain, items)
        return items

    def _write_card(self) -> None:
        if not self._has_card:
            # As JSON text, like bodies: a name may hold what a database refuses.
            card = {"name": json.dumps(self.session)}
            put_items(self._store, (*self._prefix, _SESSIONS), {self._label: card})
            self._has_card = True


def _name_on(card: Item) -> str:
    try:
        name = json.loads(card.value["name"])
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"item {card.key} in namespace {card.namespace} names no session"
        ) from error
    return str(name)
