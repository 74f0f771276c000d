"""Where sessions stand, read from their checkpoints and storage: nothing here is remembered.

What is cached is looked up by the head of the transcript, so it is never out of date.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from topicloom.reflection.due import DueState, ReflectionPolicy, ReflectionProgress
from topicloom.reflection.store import ReflectionStore
from topicloom.state.session import Session
from topicloom.state.stored_message import parse_iso_seconds
from topicloom.storage.base import TRANSCRIPT, Storage
from topicloom.storage.log import SessionLog
from topicloom.storage.sessions import SessionStore
from topicloom.storage.store_items import label

_REMEMBERED = 10_000
"""Sessions whose pending rounds need not be counted again while nothing is said."""


@dataclass(frozen=True, slots=True)
class UnreadRounds:
    """What was said since the last reflection."""

    rounds: int
    """Messages of the user."""
    last_at: float | None
    """When the newest message was said, in seconds since the epoch; None if unknown."""


class StoredSessionSource:
    """Every session of a storage, with the checkpoints that say how far each has come."""

    def __init__(
        self,
        *,
        checkpointer: BaseCheckpointSaver[Any],
        storage: Storage,
        kept: ReflectionStore,
        policy: ReflectionPolicy,
        clock: Callable[[], float],
        only: Collection[str] | None = None,
    ) -> None:
        """Args:
        checkpointer: The one that the graph was compiled with.
        storage: The one that the graph was built with.
        kept: What reflection keeps.
        policy: Says how long a lease lasts.
        clock: Tells the time in seconds since the epoch.
        only: The sessions that are looked after; all of the storage if not given.
        """
        self.kept = kept
        self._checkpointer = checkpointer
        self._storage = storage
        self._policy = policy
        self._clock = clock
        self._only = only
        self._unread: OrderedDict[str, tuple[str, ReflectionProgress, UnreadRounds]] = OrderedDict()

    def standings(self) -> Iterator[tuple[str, Callable[[], DueState]]]:
        """Sessions that are looked after, with calls that say where they stand and may raise."""
        names = self._storage.sessions() if self._only is None else list(self._only)
        progress, leases = self.kept.progress(names), self._leases()
        for name in names:
            look = partial(self._standing, name, progress.get(name), leases.get(label(name)))
            yield name, look

    def standing(self, session: str) -> DueState:
        """Where one session stands."""
        progress = self.kept.progress([session])
        return self._standing(session, progress.get(session), self._leases().get(label(session)))

    def open(self, session: str) -> tuple[Session, SessionStore]:
        """A session as its newest checkpoint has it, and its storage."""
        core, _ = self._core(session)
        return core, SessionStore(self._storage.open(session))

    def hold(self, session: str, owner: str, since: float) -> bool:
        """Take the lease of a session; False if another has it."""
        return self.kept.hold(session, owner, since, self._policy)

    def release(self, session: str, owner: str) -> None:
        """Give the lease back."""
        self.kept.release(session, owner)

    def keep(self, standing: DueState) -> None:
        """Write what has to last of a standing."""
        self.kept.keep_progress(standing.session, standing.progress)

    def _leases(self) -> dict[str, dict[str, float]]:
        return self.kept.leases(self._clock(), self._policy)

    def _standing(
        self, name: str, progress: ReflectionProgress | None, leases: dict[str, float] | None
    ) -> DueState:
        progress = progress or ReflectionProgress()
        core, written_at = self._core(name)
        unread = self._counted(core, progress)
        last_at = unread.last_at if unread.last_at is not None else written_at
        since = max(leases.values()) if leases else None
        return DueState(name, unread.rounds, last_at, progress, since)

    def _core(self, name: str) -> tuple[Session, float | None]:
        """The session of the newest checkpoint, and when that was written."""
        found = self._checkpointer.get_tuple(
            {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        )
        if found is None:
            return Session(id=name), None
        core = found.checkpoint["channel_values"].get("session") or {"id": name}
        return Session.model_validate(core), parse_iso_seconds(found.checkpoint["ts"])

    def _counted(self, core: Session, progress: ReflectionProgress) -> UnreadRounds:
        head = core.transcript
        if head is None or any(mark.ref == head for mark in progress.marks):
            return UnreadRounds(0, None)
        known = self._unread.get(core.id)
        if known is not None and known[:2] == (head, progress):
            return known[2]
        unread = _count_unread(head, self._storage.open(core.id), progress)
        self._unread[core.id] = (head, progress, unread)
        self._unread.move_to_end(core.id)
        while len(self._unread) > _REMEMBERED:
            self._unread.popitem(last=False)
        return unread


def _count_unread(head: str, log: SessionLog, progress: ReflectionProgress) -> UnreadRounds:
    # Rows, not records: this is done for every session of a tick.
    refs = log.refs(TRANSCRIPT, head)
    rows = log.read(TRANSCRIPT, refs[progress.upto(refs) :])
    times = [t for row in rows if (t := parse_iso_seconds(row["time"])) is not None]
    return UnreadRounds(sum(row["role"] == "user" for row in rows), max(times, default=None))
