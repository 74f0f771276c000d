"""A session's chains, whatever they are kept in: linking, walking and checking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any

from topicloom.errors import MissingRecordError, StorageError
from topicloom.storage.base import VectorLog
from topicloom.storage.bodies import BodyCache
from topicloom.storage.cards import ArchiveCard, card_text, check_month
from topicloom.storage.chain import PURGED, RawEntry, draft, link, load_body
from topicloom.storage.refs import HeadCache
from topicloom.storage.tombstones import is_sound, tombstone
from topicloom.storage.vectors import MADE


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
        found = self._texts(chain, refs)
        for ref in refs:
            if ref not in found:
                raise StorageError(self._mismatch(chain, ref))
        return [load_body(found[ref]) for ref in refs]

    def readable(self, chain: str, refs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Those of some bodies that can be read; see `SessionLog.readable`."""
        return {ref: load_body(text) for ref, text in self._texts(chain, refs).items()}

    def _texts(self, chain: str, refs: Sequence[str]) -> dict[str, bytes]:
        """Bodies by ref, without those that are not what was written."""
        found: dict[str, bytes] = {}
        for ref in refs:
            body = self._bodies.get(self.session, chain, ref)
            if body is not None:
                found[ref] = body
        wanted = list(dict.fromkeys(ref for ref in refs if ref not in found))
        for raw in self._fetch(chain, wanted) if wanted else ():
            if is_sound(raw):
                self._bodies.put(self.session, chain, raw.ref, raw.body)
                found[raw.ref] = raw.body
        return found

    def archive(self, chain: str, month: str, summary: Mapping[str, Any]) -> None:
        """Move a chain's bodies into the archive; see `SessionLog.archive`."""
        check_month(month)
        card_text(summary, ())  # raises before anything is changed
        with self._mutex:
            if not self._archive(chain, month, summary):
                raise MissingRecordError(
                    f"chain {chain!r} of session {self.session!r} is empty: there is nothing to"
                    " archive" + self._and_reports()
                )

    def purge(
        self,
        chain: str,
        refs: Sequence[str],
        keep: Mapping[str, Mapping[str, Any]] | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> int:
        """Remove bodies on purpose and for good; see `SessionLog.purge`."""
        with self._mutex:
            kept = keep or {}
            card_text(summary or {}, ())  # raises before anything is changed
            tombstones = {
                ref: tombstone(ref, self._prev(chain, ref), kept.get(ref, {})) for ref in refs
            }
            if not tombstones:
                return 0
            # First of all: vectors are known by their bodies; in older sessions, by their refs.
            # What was made of several, such as a brief, may be made of these.
            bodies = self.readable(chain, refs).values()
            keys = {link(None, body) for body in bodies if PURGED not in body}
            for vectors in self._all_vectors():
                made = {key for key in vectors.load()[0] if key.startswith(MADE)}
                vectors.remove({*tombstones, *keys, *made})
            count = self._purge(chain, tombstones, summary or {})
            for raw in tombstones.values():
                self._bodies.replace(self.session, chain, raw.ref, raw.body)
            return count

    def reports(self) -> list[str]:
        """What was found damaged so far; see `SessionLog.reports`."""
        with self._mutex:
            return list(self._reports)

    @abstractmethod
    def entries(self, chain: str) -> Mapping[str, str | None]:
        """The ref before each ref of a chain; see `SessionLog.entries`."""

    @abstractmethod
    def restore(self, chain: str) -> None:
        """Move a chain back out of the archive; see `SessionLog.restore`."""

    @abstractmethod
    def archived(self, chain: str) -> ArchiveCard | None:
        """What an archived chain is filed under; see `SessionLog.archived`."""

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
    def _archive(self, chain: str, month: str, summary: Mapping[str, Any]) -> bool:
        """Archive a chain; False when it is empty. The caller holds the mutex."""

    @abstractmethod
    def _purge(
        self, chain: str, tombstones: Mapping[str, RawEntry], summary: Mapping[str, Any]
    ) -> int:
        """Put tombstones in the place of entries that are there. The caller holds the mutex.

        Args:
            chain: Name of the chain.
            tombstones: By ref.
            summary: Takes the place of the one on the archive's card.

        Returns:
            How many of the entries were none yet.
        """

    @abstractmethod
    def _all_vectors(self) -> Iterable[VectorLog]:
        """The vectors of every embedding space that the session has any of."""

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
            " belongs to other storage, or an entry was lost" + self._and_reports()
        )

    def _and_reports(self) -> str:
        return "".join(f"; {report}" for report in self._reports)
