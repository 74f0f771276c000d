"""The contract of a storage backend: it keeps the rows of a session and locks it for writing.

A session is kept as rows of two kinds: entries of chains, and batches of vectors. A backend keeps
both in whatever way suits it and gives them as `Rows`, of which three methods have to be written
and two may be, to be faster. What rows mean, and when they are removed, is written once, on top:
see `log`, `chains`, `vectors`, `purging`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import Generic, NamedTuple, TypeVar

from topicloom.storage.chain import RawEntry
from topicloom.storage.topic_files import TopicFiles


class Batch(NamedTuple):
    """Vectors that were added together."""

    key: str
    """A hash of the rows as they were added. A place that keeps all vectors in one row may give
    that one another."""
    dimension: int
    """Numbers in a vector; 0 in one that is damaged, which has no rows."""
    rows: bytes
    """Keys and vectors, one after the other (`vectors.pack_rows`)."""


R = TypeVar("R", RawEntry, Batch)


class Rows(ABC, Generic[R]):
    """Rows of one kind, by key: those of a chain or of an embedding space.

    Nothing is remembered here that could be wrong: what another process has written, and what
    the last call wrote, is there in the next one. A caller that writes holds `Backend.lock`,
    unless it says otherwise; reading is safe beside other threads and processes.

    Every method raises StorageUnavailableError where the place cannot be used at all, or what
    the place's driver raises.
    """

    @abstractmethod
    def scan(self, *, bodies: bool = True) -> Iterable[R]:
        """All rows as they stand now, unchecked.

        Batches come in the order in which they were appended, others in any. Rows that others
        write meanwhile may be missing, or come twice. Without `bodies`, those of entries may be
        left empty.

        Raises:
            StorageError: Something there is no row of this kind, and nothing can go on beside it.
        """

    @abstractmethod
    def replace(self, rows: Sequence[R], remove: Collection[str] = ()) -> None:
        """Put rows in the place of those of the same key, then remove others.

        A row is whole and could be read back before the one that it replaces goes, and before
        anything is removed: killed in between, every row is there as it was or as it shall be,
        and the same call again finishes. What is as it should be already is left alone; keys that
        are not there count as removed.

        Raises:
            StorageError: A row could not be read back; the one before it is still there.
        """

    @abstractmethod
    def where(self, key: str) -> str:
        """The place of a row, for people who look for it: a file and line, an item."""

    def read(self, keys: Sequence[str]) -> Iterable[R]:
        """Those rows of some keys that are there, unchecked, in any order."""
        wanted = set(keys)
        return [row for row in self.scan() if row.key in wanted]

    def append(self, rows: Sequence[R]) -> None:
        """Add rows behind those that are there, and see to it that they last.

        The caller has looked, under the lock, that none of them is there. Killed half-way, none or
        the first of them are there. Once it returns, they and everything that could be read before
        them survive a power cut, unless the backend does not wait for that; so a call without rows
        has a meaning. This is `replace` unless overridden, which will do where that puts new rows
        last.
        """
        self.replace(rows)


class Backend(ABC):
    """One session, wherever it is kept. Making one creates nothing."""

    def __init__(self, session: str) -> None:
        """A session, by its true name."""
        self.session = session
        self.mutex = RLock()
        """Held while this process changes what it remembers of the session."""
        self.reports: list[str] = []
        """Damage that was found, and what became of it: a sentence each."""
        self.topic_files: TopicFiles | None = None
        """Copies of topics for people, where the place has any."""

    @abstractmethod
    def entries(self, chain: str) -> Rows[RawEntry]:
        """The entries of a chain.

        Raises:
            InvalidNameError: The name, or a part of it, is empty.
        """

    @abstractmethod
    def batches(self, space: str) -> Rows[Batch]:
        """The vectors of one embedding space."""

    @abstractmethod
    def spaces(self) -> Iterable[Rows[Batch]]:
        """The vectors of every embedding space that the session has any of."""

    @abstractmethod
    def lock(self, *, create: bool) -> AbstractContextManager[None]:
        """Keep everyone else from writing to the session, for as long as the context lasts.

        The same thread may take it again. Other threads of the process wait for `mutex`; other
        processes wait too, where the place has locks. Where it has none, what two write at
        once has to be there afterwards. With `create`, the session exists and is listed from now
        on. Otherwise nothing is created, and a session that does not exist is not locked.

        Raises:
            SessionBusyError: Another has held it for too long.
            StorageUnavailableError: Nothing can be written there.
        """

    @abstractmethod
    def remove(self) -> None:
        """Remove everything of the session, what lists it last. The caller holds the lock.

        Killed on the way, the same call finishes; nothing to do where there is nothing.
        """

    @abstractmethod
    def sweep(self, chain: str, *, torn: bool = False) -> None:
        """Remove what a crash left half-written of a chain. The caller holds the lock.

        With `torn`, what was set aside as damaged goes too.
        """
