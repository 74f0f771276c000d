"""One chain over any backend: its own entries, and the archived ones.

The chain is all of them together, and an entry that stands in both places is one entry. What moves
is first written where it goes, and only then removed from where it was: killed in between,
everything is there, and the same call again finishes. What is appended to an archived chain begins
its own entries anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from topicloom.errors import MissingRecordError, StorageError
from topicloom.storage.archive import Archive
from topicloom.storage.backend import Backend
from topicloom.storage.chain import RawEntry, is_intact, is_tombstone, merged


class StoredChain:
    """A chain over its entries and its archive.

    The caller holds the backend's mutex, but for `read`, which is safe beside other threads. A ref
    that is not in the chain raises MissingRecordError.
    """

    def __init__(self, backend: Backend, name: str, seen: Callable[[RawEntry], None]) -> None:
        """A chain, unknown until the first call; `seen` gets every intact entry read on the way."""
        self.archive = Archive(backend.packs(name), backend.reports)
        self._backend = backend
        self._name = name
        self._seen = seen
        self._entries = backend.entries(name)
        self._prevs: dict[str, str | None] = {}
        self._loaded = False

    def prev(self, ref: str) -> str | None:
        """The ref before a ref; looks at the storage only for one that is not known yet."""
        if not self._knows(ref) and not self._loaded:
            self._load()
        if not self._knows(ref):
            self._take(self._entries.read([ref]))
        if not self._knows(ref):
            # It is being written, or on its way into the archive or out of it.
            with self._backend.lock(create=False):
                self._load_archive()
                self._take(self._entries.read([ref]))
        if not self._knows(ref):
            raise self._missing(ref)
        return self._prevs[ref] if ref in self._prevs else self.archive.lost[ref]

    def prevs(self) -> dict[str, str | None]:
        """The ref before each ref, of all branches, what was archived first."""
        with self._backend.lock(create=False):
            self._load()
        return {**self.archive.lost, **self._prevs}

    def read(self, refs: Sequence[str]) -> list[RawEntry]:
        """Those of some entries that can be read, unchecked, in any order."""
        found = list(self._entries.read(refs))
        absent = _absent(refs, found)
        if absent:
            with self._backend.mutex:
                found += self._read_moved(absent)
        return found

    def append(self, head: str | None, entries: Sequence[RawEntry]) -> None:
        """Add those entries that are not there yet, or are not what was written any more."""
        refs = [raw.ref for raw in entries]
        if head is not None:
            # Before the lock, which creates the session: a wrong head shall leave nothing behind.
            if not self._knows(head):
                self._take(self._entries.read([head]))
            self.prev(head)
            refs.insert(0, head)
        with self._backend.lock(create=True):
            there = list(self._entries.read(refs))
            again = (raw for raw in there if raw.ref != head)
            spoilt = {raw.ref for raw in again if not is_intact(raw)}
            if spoilt:
                self._entries.replace([raw for raw in entries if raw.ref in spoilt])
            absent = set(_absent(refs, there))
            # One that was known, not as archived, and is not there has moved.
            moved = (ref in self._prevs and ref not in self.archive.prevs for ref in absent)
            if not self.archive.loaded or any(moved):
                self._load_archive()
            absent -= self.archive.prevs.keys()
            written = [raw for raw in entries if raw.ref in absent]
            self._entries.append(written)
        for raw in written:
            self._seen(raw)
        self._prevs.update((raw.ref, raw.prev) for raw in entries)

    def move_to_archive(self, month: str, summary: Mapping[str, Any]) -> bool:
        """Move intact entries into the archive; True if there are any. See `SessionLog.archive`."""
        with self._backend.lock(create=False):
            self._backend.sweep(self._name)
            entries = self._intact_entries()
            if entries:
                self.archive.write(month, list(entries.values()), summary)
                # What another machine appended meanwhile is not among these, and stays.
                self._entries.replace([], remove=entries.keys())
        return bool(entries)

    def restore(self) -> None:
        """Move everything out of the archive; see `SessionLog.restore`."""
        with self._backend.lock(create=False):
            self._backend.sweep(self._name)
            self._load_archive()
            if self.archive.exists:
                entries = self._intact_entries()
                self._entries.replace(list(entries.values()))
                if _absent(list(entries), list(self._entries.read(list(entries)))):
                    raise StorageError(
                        f"chain {self._name!r} could not be read back after it was written; the"
                        " archive stays"
                    )
                self.archive.remove()

    def purge(self, tombstones: Mapping[str, RawEntry], summary: Mapping[str, Any]) -> int:
        """Put tombstones, by ref, in the place of entries; see `SessionLog.purge`."""
        with self._backend.lock(create=False):
            self._backend.sweep(self._name)
            archived = [raw for raw in self.archive.entries() if raw.ref in tombstones]
            plain = list(self._entries.read(list(tombstones)))
            if self.archive.exists:
                self.archive.purge(tombstones, summary)
            packed = {raw.ref for raw in archived}
            single = tombstones.keys() - packed | {raw.ref for raw in plain}
            self._entries.replace([raw for ref, raw in tombstones.items() if ref in single])
            # What a crash tore off may hold parts of what is purged.
            self._backend.sweep(self._name, torn=True)
        before = merged(plain, archived)
        fresh = {raw.ref for raw in (*plain, *archived) if not is_tombstone(raw)}
        return len(fresh | (tombstones.keys() - before.keys()))

    def mismatch(self, ref: str) -> str:
        """The message that an entry is not what its ref says, with its place and the way out."""
        if not list(self._entries.read([ref])):
            if self.archive.damage:
                return f"entry {ref} of chain {self._name!r} cannot be read: {self.archive.damage}"
            place = self.archive.where(ref)
        else:
            place = self._entries.where(ref)
        return (
            f"{place}: entry {ref} is not what was written. If you changed it, change it back:"
            " storage is append-only. Otherwise restore it from a backup"
        )

    def _read_moved(self, refs: Sequence[str]) -> list[RawEntry]:
        """Those of some entries that can be read, though they are not among the chain's own."""
        if not self.archive.loaded:
            self._load_archive()
        found = list(self.archive.read(refs))
        if _absent(refs, found):
            # It was archived, restored or purged meanwhile. With the lock held it stays.
            with self._backend.lock(create=False):
                self._load_archive()
                found += self.archive.read(_absent(refs, found))
                found += self._entries.read(_absent(refs, found))
        for ref in _absent(refs, found):
            if ref not in self.archive.lost:
                raise self._missing(ref)
        return found

    def _knows(self, ref: str) -> bool:
        return ref in self._prevs or ref in self.archive.lost

    def _intact_entries(self) -> dict[str, RawEntry]:
        """All entries that are what their refs say, what was archived first.

        Raises:
            StorageError: The archive is damaged, and an entry of it stands nowhere else.
        """
        archived = self.archive.intact_entries()
        entries = merged(archived, filter(is_intact, self._entries.scan()))
        if not self.archive.lost.keys() <= entries.keys():
            raise StorageError(self.archive.damage)
        return entries

    def _load(self) -> None:
        """Index the whole chain. What is missed is looked up when it is met."""
        self._loaded = True
        self._prevs = {}
        self._load_archive()
        self._take(self._entries.scan(bodies=False))

    def _load_archive(self) -> None:
        self.archive.load()
        self._prevs.update(self.archive.prevs)

    def _take(self, entries: Iterable[RawEntry]) -> None:
        for raw in entries:
            self._prevs[raw.ref] = raw.prev
            if raw.body and is_intact(raw):
                self._seen(raw)

    def _missing(self, ref: str) -> MissingRecordError:
        session = self._backend.session
        return MissingRecordError(
            f"entry {ref} is not in chain {self._name!r} of session {session!r}: the checkpoint"
            " belongs to other storage, or an entry was lost. What can be made anew is by"
            f" `topicloom repair {session}`, or by `repair_session` in the application"
            + "".join(f"; {report}" for report in self._backend.reports)
        )


def _absent(refs: Sequence[str], found: Sequence[RawEntry]) -> list[str]:
    there = {raw.ref for raw in found}
    return [ref for ref in refs if ref not in there]
