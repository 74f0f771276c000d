"""One chain over any backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from topicloom.errors import MissingRecordError
from topicloom.storage.backend import Backend
from topicloom.storage.chain import RawEntry, is_tombstone, load_intact
from topicloom.texts import FilledText


class StoredChain:
    """A chain over its entries.

    The caller holds the backend's mutex, but for `read`, which is safe beside other threads. A ref
    that is not in the chain raises MissingRecordError.
    """

    def __init__(self, backend: Backend, name: str) -> None:
        """A chain, unknown until the first call."""
        self._backend = backend
        self._name = name
        self._entries = backend.entries(name)
        self._prevs: dict[str, str | None] = {}
        self._loaded = False

    def prev(self, ref: str) -> str | None:
        """The ref before a ref; looks at the storage only for one that is not known yet."""
        if ref not in self._prevs and not self._loaded:
            self._load()
        if ref not in self._prevs:
            self._take(self.read([ref]))
        return self._prevs[ref]

    def prevs(self) -> dict[str, str | None]:
        """The ref before each ref, of all branches."""
        with self._backend.lock(create=False):
            self._load()
        return dict(self._prevs)

    def read(self, refs: Sequence[str]) -> list[RawEntry]:
        """Those of some entries that can be read, unchecked, in any order."""
        found = list(self._entries.read(refs))
        absent = _absent(refs, found)
        if absent:
            # They are being written: with the lock held they stay as they are.
            with self._backend.mutex, self._backend.lock(create=False):
                found += self._entries.read(absent)
        for ref in _absent(refs, found):
            raise self._missing(ref)
        return found

    def append(self, head: str | None, entries: Sequence[RawEntry]) -> None:
        """Add those entries that are not there yet, or are not what was written any more."""
        refs = [raw.ref for raw in entries]
        if head is not None:
            # Before the lock, which creates the session: a wrong head shall leave nothing behind.
            if head not in self._prevs:
                self._take(self._entries.read([head]))
            self.prev(head)
            refs.insert(0, head)
        with self._backend.lock(create=True):
            there = list(self._entries.read(refs))
            again = (raw for raw in there if raw.ref != head)
            spoilt = {raw.ref for raw in again if load_intact(raw) is None}
            if spoilt:
                self._entries.replace([raw for raw in entries if raw.ref in spoilt])
            absent = {*_absent(refs, there)}
            self._entries.append([raw for raw in entries if raw.ref in absent])
        self._prevs.update((raw.ref, raw.prev) for raw in entries)

    def purge(self, tombstones: Mapping[str, RawEntry]) -> int:
        """Put tombstones, by ref, in the place of entries; see `SessionLog.purge`."""
        with self._backend.lock(create=False):
            self._backend.sweep(self._name)
            before = {raw.ref for raw in self._entries.read(list(tombstones)) if is_tombstone(raw)}
            self._entries.replace(list(tombstones.values()))
            # What a crash tore off may hold parts of what is purged.
            self._backend.sweep(self._name, torn=True)
        return len(tombstones.keys() - before)

    def mismatch(self, ref: str) -> str:
        """The message that an entry is not what its ref says, with its place and the way out."""
        return FilledText(
            "{place}: entry {ref} is not what was written. If you changed it, change it back:"
            " storage is append-only. Otherwise restore it from a backup",
            place=self._entries.where(ref),
            ref=ref,
        )

    def _load(self) -> None:
        """Index the whole chain. What is missed is looked up when it is met."""
        self._loaded = True
        self._prevs = {}
        self._take(self._entries.scan(bodies=False))

    def _take(self, entries: Iterable[RawEntry]) -> None:
        self._prevs.update((raw.ref, raw.prev) for raw in entries)

    def _missing(self, ref: str) -> MissingRecordError:
        session = self._backend.session
        return MissingRecordError(
            "entry {ref} is not in chain {chain!r} of session {session!r}: the checkpoint belongs"
            " to other storage, or an entry was lost. What can be made anew is by `topicloom repair"
            " {session}`, or by `repair_session` in the application{reports}",
            ref=ref,
            chain=self._name,
            session=session,
            reports="".join(f"; {report}" for report in self._backend.reports),
        )


def _absent(refs: Sequence[str], found: Sequence[RawEntry]) -> list[str]:
    there = {raw.ref for raw in found}
    return [ref for ref in refs if ref not in there]
