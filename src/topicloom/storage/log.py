"""A session's chains, whatever they are kept in: linking, walking and checking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

from topicloom.errors import MissingRecordError, StorageError
from topicloom.storage.base import VectorLog
from topicloom.storage.bodies import BodyCache
from topicloom.storage.chain import RawEntry, draft, is_sound, load_body
from topicloom.storage.refs import HeadCache


class ChainLog(ABC):
    """A `SessionLog` over the few things that differ between a file and a store."""

    def __init__(self, session: str, bodies: BodyCache) -> None:
        """A log of a session.

        Args:
            session: The session's true name.
            bodies: Cache of bodies, shared by the sessions of a storage.
        """
        self.session = session
        self._bodies = bodies
        self._heads = HeadCache()
        self._mutex = RLock()
        self._reports: list[str] = []

    def append(
        self, chain: str, head: str | None, bodies: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """Append bodies after a head; see `SessionLog.append`."""
        entries: list[RawEntry] = []
        newest = head
        for body in bodies:
            entries.append(draft(newest, body))
            newest = entries[-1].ref
        if entries:
            with self._mutex:
                self._append(chain, head, entries)
        return newest

    def refs(self, chain: str, head: str | None) -> Sequence[str]:
        """The refs up to a head, oldest first; see `SessionLog.refs`."""
        with self._mutex:
            return self._heads.refs(chain, head, lambda ref: self._prev(chain, ref))

    def read(self, chain: str, refs: Sequence[str]) -> list[dict[str, Any]]:
        """The bodies of refs, in their order; see `SessionLog.read`."""
        found: dict[str, bytes] = {}
        for ref in refs:
            body = self._bodies.get(self.session, chain, ref)
            if body is not None:
                found[ref] = body
        wanted = list(dict.fromkeys(ref for ref in refs if ref not in found))
        for raw in self._fetch(chain, wanted) if wanted else ():
            if not is_sound(raw):
                raise StorageError(self._mismatch(chain, raw.ref))
            self._bodies.put(self.session, chain, raw.ref, raw.body)
            found[raw.ref] = raw.body
        return [load_body(found[ref]) for ref in refs]

    def reports(self) -> list[str]:
        """What was found damaged so far; see `SessionLog.reports`."""
        with self._mutex:
            return list(self._reports)

    @abstractmethod
    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space; see `SessionLog.vectors`."""

    @abstractmethod
    def _append(self, chain: str, head: str | None, entries: Sequence[RawEntry]) -> None:
        """Write those of the entries that are not there yet. The caller holds the mutex.

        Raises:
            MissingRecordError: The head is not in the chain.
        """

    @abstractmethod
    def _prev(self, chain: str, ref: str) -> str | None:
        """The ref before a ref. The caller holds the mutex.

        Raises:
            MissingRecordError: The ref is not in the chain.
        """

    @abstractmethod
    def _fetch(self, chain: str, refs: Sequence[str]) -> Iterable[RawEntry]:
        """The entries of different refs, unchecked, in any order.

        Raises:
            MissingRecordError: A ref is not in the chain.
        """

    @abstractmethod
    def _mismatch(self, chain: str, ref: str) -> str:
        """What to tell the user about an entry that is not what its ref says."""

    def _missing(self, chain: str, ref: str) -> MissingRecordError:
        return MissingRecordError(
            f"entry {ref} is not in chain {chain!r} of session {self.session!r}: the checkpoint"
            " belongs to other storage, or an entry was lost"
            + "".join(f"; {report}" for report in self._reports)
        )
