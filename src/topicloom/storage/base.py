"""Storages of sessions, and the names of the chains that each session has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from topicloom.storage.backend import Backend
from topicloom.storage.caches import OpenSessions
from topicloom.storage.log import SessionLog

# The chains of a session.
TRANSCRIPT = "transcript"
"""Every message, in order."""
SUPERSEDED = "superseded"
"""Edits of the conversation: which messages are out of view, and what others say now."""
CHANGES = "changes"
"""What was changed of the topics, and by whom."""
RANGES = "ranges"
"""Which messages are in which topic; see `TopicRanges`."""
ROSTER = "roster"
"""Topics; a later row of a topic replaces the earlier ones."""
LEDGER = "ledger"
"""Recall notes."""
TURNS = "turns"
"""Receipts."""
EDITS = "edits"
"""Edits of the application's document."""
TIPS = "heads"
"""The newest session of each branch; rows that are replaced, not linked."""


class Storage(ABC):
    """A place where sessions live. Safe to use from several threads."""

    def __init__(self) -> None:
        self._logs = OpenSessions(lambda name: SessionLog(self.backend(name)))

    def open(self, session: str) -> SessionLog:
        """The log of a session, which need not exist yet; nothing is created by opening.

        Args:
            session: Thread id: any text but the empty one.

        Returns:
            The same object for the same session for as long as it is referenced. It has nothing in
            memory of what was purged by now, whichever process did it.

        Raises:
            InvalidNameError: The name is empty.
            StorageUnavailableError: Nothing can be read there.
        """
        log = self._logs.get(session)
        log.renew()
        return log

    def delete(self, session: str) -> None:
        """Remove a session for good, if it is there; call it while nobody writes to it.

        Killed on the way, the same call finishes.

        Raises:
            InvalidNameError: The name is empty.
            SessionBusyError: Another has held it for too long.
            StorageUnavailableError: Nothing can be removed there.
        """
        self.open(session).delete()

    @abstractmethod
    def backend(self, session: str) -> Backend:
        """The rows of a session; nothing is created. Raises as `open` does."""

    @abstractmethod
    def sessions(self) -> list[str]:
        """Names of all sessions that hold anything, sorted.

        Raises:
            StorageUnavailableError: Nothing can be read there.
        """

    @abstractmethod
    def lock(self, session: str) -> AbstractContextManager[None]:
        """Hold a session for as long as the context lasts. Appends do not need this.

        Raises:
            SessionBusyError: On entry, when another holds it.
        """
