"""The sessions of a storage, read from their checkpoints: nothing here is remembered.

What is cached is looked up by the head of the transcript, so it is never out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from topicloom.reflection.due import DueState, ReflectionPolicy, ReflectionProgress
from topicloom.reflection.store import ReflectionStore
from topicloom.state.session import Session
from topicloom.state.stored_message import parse_iso_seconds
from topicloom.storage.base import TRANSCRIPT, Storage
from topicloom.storage.caches import WeighedCache
from topicloom.storage.log import SessionLog
from topicloom.storage.sessions import SessionStore
from topicloom.storage.store_items import label

_CACHED = 10_000
"""Sessions whose pending rounds need not be counted again while nothing is said."""

Unread = tuple[int, float | None]
"""User rounds since the last reflection, and when the newest message of these was said."""


class StoredSessionSource:
    """Every session of a storage, with the checkpoints that say how far each has come."""

    def __init__(
        self,
        *,
        checkpointer: BaseCheckpointSaver[Any],
        storage: Storage,
        store: ReflectionStore,
        policy: ReflectionPolicy,
        clock: Callable[[], float],
        only: Collection[str] | None = None,
    ) -> None:
        """The sessions of a graph's checkpointer and storage, or only some of them.

        The clock gives seconds since the epoch.
        """
        self.store = store
        self._checkpointer = checkpointer
        self._storage = storage
        self._policy = policy
        self._clock = clock
        self._only = only
        self._unread: WeighedCache[tuple[str, str, ReflectionProgress], Unread] = WeighedCache(
            _CACHED, lambda _: 1
        )

    def iterate_states(self) -> Iterator[tuple[str, Callable[[], DueState]]]:
        """The sessions that are looked after, with calls that read their states and may raise."""
        names = self._storage.sessions() if self._only is None else list(self._only)
        progress, leases = self.store.progress(names), self._list_leases()
        for name in names:
            look = partial(self._build_state, name, progress.get(name), leases.get(label(name)))
            yield name, look

    def get_state(self, session: str) -> DueState:
        """The state of one session."""
        progress, leases = self.store.progress([session]), self._list_leases()
        return self._build_state(session, progress.get(session), leases.get(label(session)))

    def open(self, session: str) -> tuple[Session, SessionStore]:
        """A session as its newest checkpoint has it, and its storage."""
        return self._load_session(session)[0], SessionStore(self._storage.open(session))

    def acquire_lease(self, session: str, owner: str, since: float) -> bool:
        """Take the lease of a session; False if another has it."""
        return self.store.acquire_lease(session, owner, since, self._policy)

    def release_lease(self, session: str, owner: str) -> None:
        """Give the lease back."""
        self.store.release_lease(session, owner)

    def save_state(self, state: DueState) -> None:
        """Write the progress of a session."""
        self.store.save_progress(state.session, state.progress)

    def _list_leases(self) -> dict[str, dict[str, float]]:
        return self.store.leases(self._clock(), self._policy)

    def _build_state(
        self, name: str, progress: ReflectionProgress | None, leases: dict[str, float] | None
    ) -> DueState:
        progress = progress or ReflectionProgress()
        session, written_at = self._load_session(name)
        rounds, last_at = self._count_unread(session, progress)
        since = max(leases.values()) if leases else None
        return DueState(name, rounds, written_at if last_at is None else last_at, progress, since)

    def _load_session(self, name: str) -> tuple[Session, float | None]:
        """The session of the newest checkpoint, and when that was written."""
        found = self._checkpointer.get_tuple(
            {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        )
        if found is None:
            return Session(id=name), None
        session = found.checkpoint["channel_values"].get("session") or {"id": name}
        return Session.model_validate(session), parse_iso_seconds(found.checkpoint["ts"])

    def _count_unread(self, session: Session, progress: ReflectionProgress) -> Unread:
        head = session.transcript
        if head is None or any(mark.ref == head for mark in progress.marks):
            return 0, None
        key = session.id, head, progress
        unread = self._unread.get(key)
        if unread is None:
            unread = _read_unread(head, self._storage.open(session.id), progress)
            self._unread.put(key, unread)
        return unread


def _read_unread(head: str, log: SessionLog, progress: ReflectionProgress) -> Unread:
    # Rows, not messages: this is done for every session of a tick.
    refs = log.refs(TRANSCRIPT, head)
    rows = log.read(TRANSCRIPT, refs[progress.find_reached(refs) :])
    times = [t for row in rows if (t := parse_iso_seconds(row["time"])) is not None]
    return sum(row["role"] == "user" for row in rows), max(times, default=None)
