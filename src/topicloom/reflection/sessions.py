"""The sessions of a storage, read from their checkpoints: nothing here is remembered."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from topicloom.reflection.due import DueState, ReflectionPolicy, ReflectionProgress
from topicloom.reflection.store import ReflectionStore
from topicloom.state.session import Session
from topicloom.state.stored_message import parse_iso_seconds
from topicloom.storage.base import TRANSCRIPT, Storage
from topicloom.storage.sessions import SessionStore

Unread = tuple[int, float | None, bool]
"""User rounds in view since the last reflection, when the newest message of these was said, and
True if that is the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSessionSource:
    """Every session of a storage, with the checkpoints that say how far each has come.

    Every method may block, raise, and be called by any thread.
    """

    checkpointer: BaseCheckpointSaver[Any]
    storage: Storage
    store: ReflectionStore
    policy: ReflectionPolicy
    clock: Callable[[], float]
    """Gives seconds since the epoch."""
    only: Collection[str] | None = None
    """The sessions that are looked after, if not all."""

    def list_sessions(self) -> list[str]:
        return self.storage.sessions() if self.only is None else list(self.only)

    def get_state(self, session: str) -> DueState:
        progress = self.store.progress(session)
        found, written_at = self._load_session(session)
        rounds, said_at, waiting = self._count_unread(found, progress)
        last_at = written_at if said_at is None else said_at
        return DueState(session, rounds, last_at, progress, waiting)

    def open(self, session: str) -> tuple[Session, SessionStore]:
        """A session as its newest checkpoint has it, and its storage."""
        return self._load_session(session)[0], SessionStore(self.storage.open(session))

    def acquire_lease(self, session: str, owner: str, since: float) -> bool:
        return self.store.acquire_lease(session, owner, since, self.policy)

    def release_lease(self, session: str, owner: str) -> None:
        self.store.release_lease(session, owner)

    def save_progress(self, session: str, progress: ReflectionProgress) -> None:
        self.store.save_progress(session, progress)
        # Written last of all, before this look: what was deleted meanwhile does not come back.
        if self._find_checkpoint(session) is None:
            self.store.delete(session)

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
        # Rows, not messages: this is done for every session of a tick.
        log = self.storage.open(session.id)
        refs = log.refs(TRANSCRIPT, head)
        superseded = SessionStore(log).superseded(session)
        gone = {number for number, shown in superseded.items() if shown is None}
        read = log.read(TRANSCRIPT, refs[progress.find_reached(refs) :])
        rows = [row for row in read if row["seq"] not in gone]
        times = [t for row in rows if (t := parse_iso_seconds(row["time"])) is not None]
        asked = [row["role"] == "user" for row in rows]
        return sum(asked), max(times, default=None), asked[-1:] == [True]
