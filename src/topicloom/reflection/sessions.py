"""The sessions of a storage, read from their checkpoints: nothing here is remembered.

What is cached is looked up by the head of the transcript, so it is never out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from topicloom.reflection.due import DueState, ReflectionPolicy, ReflectionProgress
from topicloom.reflection.store import ReflectionStore
from topicloom.state.session import Session
from topicloom.state.stored_message import parse_iso_seconds
from topicloom.storage.base import TRANSCRIPT, Storage
from topicloom.storage.caches import WeighedCache
from topicloom.storage.sessions import SessionStore
from topicloom.storage.store_items import label

_CACHED = 10_000
"""Sessions whose pending rounds need not be counted again while nothing is said."""

Unread = tuple[int, float | None, bool]
"""User rounds in view since the last reflection, when the newest message of these was said, and
True if that is the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSessionSource:
    """Every session of a storage, with the checkpoints that say how far each has come."""

    checkpointer: BaseCheckpointSaver[Any]
    storage: Storage
    store: ReflectionStore
    policy: ReflectionPolicy
    clock: Callable[[], float]
    """Gives seconds since the epoch."""
    only: Collection[str] | None = None
    """The sessions that are looked after, if not all."""
    _unread: WeighedCache[tuple[str, str, str | None, ReflectionProgress], Unread] = field(
        default_factory=lambda: WeighedCache(_CACHED), init=False
    )

    def iterate_states(self) -> Iterator[tuple[str, Callable[[], DueState]]]:
        names = self.storage.sessions() if self.only is None else list(self.only)
        progress, leases = self.store.progress(names), self.store.leases(self.clock())
        for name in names:
            look = partial(self._build_state, name, progress.get(name), leases.get(label(name)))
            yield name, look

    def get_state(self, session: str) -> DueState:
        progress, leases = self.store.progress([session]), self.store.leases(self.clock())
        return self._build_state(session, progress.get(session), leases.get(label(session)))

    def open(self, session: str) -> tuple[Session, SessionStore]:
        """A session as its newest checkpoint has it, and its storage."""
        return self._load_session(session)[0], SessionStore(self.storage.open(session))

    def acquire_lease(self, session: str, owner: str, since: float) -> bool:
        return self.store.acquire_lease(session, owner, since, self.policy)

    def release_lease(self, session: str, owner: str) -> None:
        self.store.release_lease(session, owner)

    def save_state(self, state: DueState) -> None:
        self.store.save_progress(state.session, state.progress)
        # Written last of all, before this look: what was deleted meanwhile does not come back.
        if self._find_checkpoint(state.session) is None:
            self.store.delete(state.session)

    def _build_state(
        self, name: str, progress: ReflectionProgress | None, leases: dict[str, float] | None
    ) -> DueState:
        progress = progress or ReflectionProgress()
        session, written_at = self._load_session(name)
        rounds, said_at, waiting = self._count_unread(session, progress)
        last_at = written_at if said_at is None else said_at
        since = max(leases.values()) if leases else None
        return DueState(name, rounds, last_at, progress, since, waiting)

    def _find_checkpoint(self, name: str) -> CheckpointTuple | None:
        thread: RunnableConfig = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        return self.checkpointer.get_tuple(thread)

    def _load_session(self, name: str) -> tuple[Session, float | None]:
        found = self._find_checkpoint(name)
        if found is None:
            return Session(id=name), None
        session = found.checkpoint["channel_values"].get("session") or {"id": name}
        return Session.model_validate(session), parse_iso_seconds(found.checkpoint["ts"])

    def _count_unread(self, session: Session, progress: ReflectionProgress) -> Unread:
        head = session.transcript
        if head is None or any(mark.ref == head for mark in progress.marks):
            return 0, None, False
        key = session.id, head, session.superseded, progress
        unread = self._unread.get(key)
        if unread is None:
            # Rows, not messages: this is done for every session of a tick.
            log = self.storage.open(session.id)
            refs = log.refs(TRANSCRIPT, head)
            superseded = SessionStore(log).superseded(session)
            gone = {number for number, shown in superseded.items() if shown is None}
            read = log.read(TRANSCRIPT, refs[progress.find_reached(refs) :])
            rows = [row for row in read if row["seq"] not in gone]
            times = [t for row in rows if (t := parse_iso_seconds(row["time"])) is not None]
            asked = [row["role"] == "user" for row in rows]
            unread = sum(asked), max(times, default=None), asked[-1:] == [True]
            self._unread.put(key, unread)
        return unread
