"""Sessions in any LangGraph store: PostgreSQL for many machines, memory for tests.

Each entry is one item. Its namespace is the prefix, the session and the chain; its key is the
entry's ref; its value is `{"body": <JSON text>, "prev": <ref or null>}`. The body is text and
not an object, because databases change objects: PostgreSQL reorders keys, rewrites numbers, and
refuses NUL characters and lone surrogates. In SQL, `(value->>'body')::jsonb` reads most of them.

Labels are made by `store_items.label`, which puts `%` only before hex digits. Labels of our own
cannot be mistaken for any: `%sessions` lists the sessions, `%vectors-<fingerprint>` holds vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from langgraph.store.base import BaseStore, Item

from topicloom.errors import ConfigurationError, SessionBusyError, StorageError
from topicloom.storage.base import SessionLog, VectorLog
from topicloom.storage.bodies import DEFAULT_BYTES, BodyCache
from topicloom.storage.chain import RawEntry, is_sound
from topicloom.storage.log import ChainLog
from topicloom.storage.shelf import Shelf
from topicloom.storage.store_items import Namespace, items_at, items_in, label, put_items
from topicloom.storage.store_vectors import StoreVectors

_SESSIONS = "%sessions"
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
        self._chains: dict[str, dict[str, str | None]] = {}
        self._loaded: set[str] = set()

    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space; see `SessionLog.vectors`."""
        own = f"%vectors-{label(fingerprint)}"
        return StoreVectors(self._store, (*self._prefix, self._label, own), self._write_card)

    def _append(self, chain: str, head: str | None, entries: Sequence[RawEntry]) -> None:
        prevs = self._chains.setdefault(chain, {})
        refs = [raw.ref for raw in entries]
        self._look_up(chain, refs if head is None else [head, *refs])
        if head is not None and head not in prevs:
            raise self._missing(chain, head)
        new = [raw for raw in entries if raw.ref not in prevs]
        if new:
            self._write_card()
            put_items(self._store, self._namespace(chain), {raw.ref: _value(raw) for raw in new})
            prevs.update((raw.ref, raw.prev) for raw in new)

    def _prev(self, chain: str, ref: str) -> str | None:
        prevs = self._chains.setdefault(chain, {})
        if ref not in prevs and chain not in self._loaded:
            self._load(chain)
        if ref not in prevs:
            self._look_up(chain, [ref])
        if ref not in prevs:
            raise self._missing(chain, ref)
        return prevs[ref]

    def _fetch(self, chain: str, refs: Sequence[str]) -> Iterable[RawEntry]:
        found = [_raw(item) for item in items_at(self._store, self._namespace(chain), refs)]
        absent = set(refs) - {raw.ref for raw in found}
        if absent:
            raise self._missing(chain, min(absent))
        return found

    def _mismatch(self, chain: str, ref: str) -> str:
        return (
            f"item {ref} in namespace {self._namespace(chain)} is not what was written. If you"
            " changed it, change it back: storage is append-only. Otherwise restore it from a"
            " backup"
        )

    def _load(self, chain: str) -> None:
        """Take in a whole chain by pages. What is missed is looked up when it is met."""
        self._loaded.add(chain)
        prevs = self._chains[chain]
        for item in items_in(self._store, self._namespace(chain)):
            self._take(chain, prevs, _raw(item))

    def _look_up(self, chain: str, refs: Sequence[str]) -> None:
        """Take in those of some entries that are in the store."""
        prevs = self._chains[chain]
        unknown = [ref for ref in refs if ref not in prevs]
        if unknown:
            for item in items_at(self._store, self._namespace(chain), unknown):
                self._take(chain, prevs, _raw(item))

    def _take(self, chain: str, prevs: dict[str, str | None], raw: RawEntry) -> None:
        prevs[raw.ref] = raw.prev
        if is_sound(raw):
            self._bodies.put(self.session, chain, raw.ref, raw.body)

    def _namespace(self, chain: str) -> Namespace:
        return (*self._prefix, self._label, label(chain))

    def _write_card(self) -> None:
        if not self._has_card:
            # As JSON text, like bodies: a name may hold what a database refuses.
            card = {"name": json.dumps(self.session)}
            put_items(self._store, (*self._prefix, _SESSIONS), {self._label: card})
            self._has_card = True


def _value(raw: RawEntry) -> dict[str, str | None]:
    return {"body": raw.body.decode(), "prev": raw.prev}


def _raw(item: Item) -> RawEntry:
    """The entry in an item; of a damaged item, one that no check lets through."""
    body, prev = item.value.get("body"), item.value.get("prev")
    text = body.encode("utf-8", "replace") if isinstance(body, str) else b""
    return RawEntry(item.key, prev if isinstance(prev, str) else None, text)


def _name_on(card: Item) -> str:
    try:
        name = json.loads(card.value["name"])
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"item {card.key} in namespace {card.namespace} names no session"
        ) from error
    return str(name)
