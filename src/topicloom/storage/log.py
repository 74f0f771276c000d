"""A session's chains over a backend: linking, walking, checking, and what a purge takes along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from topicloom.errors import MissingRecordError, StorageError
from topicloom.storage.backend import Backend, Batch, Rows
from topicloom.storage.base import VectorLog
from topicloom.storage.caches import BodyCache
from topicloom.storage.chain import PURGED, RawEntry, draft, is_sound, link, load_body, tombstone
from topicloom.storage.chains import StoredChain
from topicloom.storage.packing import ArchiveCard, card_text, check_month
from topicloom.storage.refs import HeadCache
from topicloom.storage.vectors import MADE, Vectors


class ChainLog:
    """The `SessionLog` of any backend."""

    def __init__(self, backend: Backend, bodies: BodyCache) -> None:
        """A log of a session.

        Args:
            backend: Where the session is kept.
            bodies: Cache of bodies, shared by the sessions of a storage.
        """
        self._backend = backend
        self._bodies = bodies
        self._heads = HeadCache()
        self._mutex = backend.mutex
        self._chains: dict[str, StoredChain] = {}

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
                self._chain(chain).append(head, entries)
        return newest

    def refs(self, chain: str, head: str | None) -> Sequence[str]:
        """The refs up to a head, oldest first; see `SessionLog.refs`."""
        with self._mutex:
            return self._heads.refs(chain, head, self._chain(chain).prev)

    def read(self, chain: str, refs: Sequence[str]) -> list[dict[str, Any]]:
        """The bodies of refs, in their order; see `SessionLog.read`."""
        found = self._texts(chain, refs)
        for ref in refs:
            if ref not in found:
                raise StorageError(self._chain(chain).mismatch(ref))
        return [load_body(found[ref]) for ref in refs]

    def readable(self, chain: str, refs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Those of some bodies that can be read; see `SessionLog.readable`."""
        return {ref: load_body(text) for ref, text in self._texts(chain, refs).items()}

    def entries(self, chain: str) -> Mapping[str, str | None]:
        """The ref before each ref of a chain; see `SessionLog.entries`."""
        with self._mutex:
            return self._chain(chain).prevs()

    def archive(self, chain: str, month: str, summary: Mapping[str, Any]) -> None:
        """Move a chain's bodies into the archive; see `SessionLog.archive`."""
        check_month(month)
        card_text(summary, ())  # raises before anything is changed
        with self._mutex:
            if not self._chain(chain).move_to_archive(month, summary):
                raise MissingRecordError(
                    f"chain {chain!r} of session {self._backend.session!r} is empty: there is"
                    " nothing to archive" + "".join(f"; {one}" for one in self._backend.reports)
                )

    def restore(self, chain: str) -> None:
        """Move a chain back out of the archive; see `SessionLog.restore`."""
        with self._mutex:
            self._chain(chain).restore()

    def archived(self, chain: str) -> ArchiveCard | None:
        """What an archived chain is filed under; see `SessionLog.archived`."""
        with self._mutex:
            return self._chain(chain).archive.card()

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
                ref: tombstone(ref, self._chain(chain).prev(ref), kept.get(ref, {})) for ref in refs
            }
            if not tombstones:
                return 0
            # First of all: vectors are known by their bodies; in older sessions, by their refs.
            # What was made of several, such as a brief, may be made of these.
            bodies = self.readable(chain, refs).values()
            keys = {link(None, body) for body in bodies if PURGED not in body}
            for vectors in map(self._vectors, self._backend.spaces()):
                made = {key for key in vectors.load()[0] if key.startswith(MADE)}
                vectors.remove({*tombstones, *keys, *made})
            count = self._chain(chain).purge(tombstones, summary or {})
            for raw in tombstones.values():
                self._bodies.replace((self._backend.session, chain, raw.ref), raw.body)
            return count

    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space; see `SessionLog.vectors`."""
        return self._vectors(self._backend.batches(fingerprint))

    def reports(self) -> list[str]:
        """What was found damaged so far; see `SessionLog.reports`."""
        with self._mutex:
            return list(self._backend.reports)

    def _texts(self, chain: str, refs: Sequence[str]) -> dict[str, bytes]:
        """Bodies by ref, without those that are not what was written."""
        found: dict[str, bytes] = {}
        for ref in refs:
            body = self._bodies.get((self._backend.session, chain, ref))
            if body is not None:
                found[ref] = body
        wanted = list(dict.fromkeys(ref for ref in refs if ref not in found))
        for raw in self._chain(chain).read(wanted) if wanted else ():
            if is_sound(raw):
                self._keep(chain, raw)
                found[raw.ref] = raw.body
        return found

    def _chain(self, name: str) -> StoredChain:
        chain = self._chains.get(name)
        if chain is None:
            chain = StoredChain(self._backend, name, partial(self._keep, name))
            chain = self._chains.setdefault(name, chain)
        return chain

    def _keep(self, chain: str, raw: RawEntry) -> None:
        self._bodies.put((self._backend.session, chain, raw.ref), raw.body)

    def _vectors(self, batches: Rows[Batch]) -> Vectors:
        return Vectors(batches, partial(self._backend.lock, create=True))
