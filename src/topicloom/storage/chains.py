"""One chain over any backend.

What an earlier version packed of an archived chain, elsewhere, is read as if it stood in the chain,
and put there at the first write. It is first written where it goes, and only then removed from
where it was: killed in between, everything is there, and the next write finishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from topicloom.errors import MissingRecordError, StorageError
from topicloom.storage.backend import Backend
from topicloom.storage.chain import RawEntry, is_intact, is_tombstone, merged
from topicloom.texts import FilledText


class StoredChain:
    """A chain over its entries.

    The caller holds the backend's mutex, but for `read`, which is safe beside other threads. A ref
    that is not in the chain raises MissingRecordError.
    """

    def __init__(self, backend: Backend, name: str, seen: Callable[[RawEntry], None]) -> None:
        """A chain, unknown until the first call; `seen` gets every intact entry read on the way."""
        self._backend = backend
        self._name = name
        self._seen = seen
        self._entries = backend.entries(name)
        self._prevs: dict[str, str | None] = {}
        self._loaded = False
        self._plain = False
        """True if nothing was packed of it when this was last looked for: nobody packs any more."""

    def prev(self, ref: str) -> str | None:
        """The ref before a ref; looks at the storage only for one that is not known yet."""
        if ref not in self._prevs and not self._loaded:
            self._load()
        if ref not in self._prevs:
            self._take(self._entries.read([ref]))
        if ref not in self._prevs:
            # It is being written or moved.
            with self._backend.lock(create=False):
                self._take([*self._entries.read([ref]), *self._read_packed()])
        if ref not in self._prevs:
            raise self._missing(ref)
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
            # They were moved meanwhile, or are packed. With the lock held they stay.
            with self._backend.mutex, self._backend.lock(create=False):
                found += self._entries.read(absent)
                absent = _absent(refs, found)
                found += [raw for raw in self._read_packed() if raw.ref in absent] if absent else []
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
            packed = {} if self._plain else self._unpack() or {}
            there = list(self._entries.read(refs))
            again = (raw for raw in there if raw.ref != head)
            spoilt = {raw.ref for raw in again if not is_intact(raw)}
            if spoilt:
                self._entries.replace([raw for raw in entries if raw.ref in spoilt])
            absent = {*_absent(refs, there)} - {ref for ref, raw in packed.items() if raw.body}
            written = [raw for raw in entries if raw.ref in absent]
            self._entries.append(written)
        for raw in written:
            self._seen(raw)
        self._prevs.update((raw.ref, raw.prev) for raw in entries)

    def move(self, month: str | None) -> bool:
        """Move it into the archive or out of it; see `SessionLog.archive`."""
        with self._backend.lock(create=False):
            self._backend.sweep(self._name)
            unpacked = self.unpack()
            return self._backend.move(self._name, month) or unpacked

    def unpack(self) -> bool:
        """Put into the chain what an earlier version packed; see `SessionLog.unpack`.

        Returns True if there was any.
        """
        with self._backend.lock(create=False):
            old = self._backend.old_archives(self._name)
            if self._unpack() is not None:
                raise StorageError(next(one.explain() for one in old if one.damage))
        return bool(old)

    def purge(self, tombstones: Mapping[str, RawEntry]) -> int:
        """Put tombstones, by ref, in the place of entries; see `SessionLog.purge`."""
        with self._backend.lock(create=False):
            self._backend.sweep(self._name)
            self.unpack()
            before = {raw.ref for raw in self._entries.read(list(tombstones)) if is_tombstone(raw)}
            self._entries.replace(list(tombstones.values()))
            # What a crash tore off may hold parts of what is purged.
            self._backend.sweep(self._name, torn=True)
        return len(tombstones.keys() - before)

    def mismatch(self, ref: str) -> str:
        """The message that an entry is not what its ref says, with its place and the way out."""
        if list(self._entries.read([ref])):
            place = self._entries.where(ref)
        else:
            old = self._backend.old_archives(self._name)
            holding = [one for one in old if any(raw.ref == ref for raw in one.entries)]
            if holding and holding[0].damage:
                damage = holding[0].explain()
                return FilledText(
                    "entry {ref} of chain {chain!r} cannot be read: {damage}",
                    ref=ref,
                    chain=self._name,
                    damage=damage,
                )
            place = holding[0].place if holding else "the archive"
        return FilledText(
            "{place}: entry {ref} is not what was written. If you changed it, change it back:"
            " storage is append-only. Otherwise restore it from a backup",
            place=place,
            ref=ref,
        )

    def _unpack(self) -> dict[str, RawEntry] | None:
        """Put into the chain what is packed of it; None if nothing is packed any more.

        Where some of it cannot be read and is in no other place, all of it stays packed and is
        returned. The caller holds the lock.
        """
        old = self._backend.old_archives(self._name)
        self._plain = not old
        if not old:
            return None
        own = {raw.ref: raw for raw in self._entries.scan()}
        packed = _merge([raw for one in old for raw in one.entries])
        lost = [raw for raw in packed.values() if not raw.body and raw.ref not in own]
        if lost or not all(one.listed for one in old):
            return packed
        whole = _merge([*own.values(), *(raw for raw in packed.values() if raw.body)])
        fresh = [raw for ref, raw in whole.items() if own.get(ref) != raw]
        self._entries.replace(fresh)
        if set(self._entries.read([raw.ref for raw in fresh])) != set(fresh):
            raise StorageError(
                "chain {name!r} could not be read back after it was written; the archive stays",
                name=self._name,
            )
        self._backend.remove_old_archives(self._name)
        return None

    def _read_packed(self) -> list[RawEntry]:
        """What is packed of the chain; what is damaged is reported."""
        old = self._backend.old_archives(self._name)
        for report in (one.explain() for one in old if one.damage):
            if report not in self._backend.reports:
                self._backend.reports.append(report)
        return list(_merge([raw for one in old for raw in one.entries]).values())

    def _load(self) -> None:
        """Index the whole chain. What is missed is looked up when it is met."""
        self._loaded = True
        self._prevs = {}
        self._take(self._read_packed())
        self._take(self._entries.scan(bodies=False))

    def _take(self, entries: Iterable[RawEntry]) -> None:
        for raw in entries:
            self._prevs[raw.ref] = raw.prev
            if raw.body and is_intact(raw):
                self._seen(raw)

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


def _merge(entries: Sequence[RawEntry]) -> dict[str, RawEntry]:
    """Entries by ref; of one that stands there twice, what was purged, else an intact one."""
    best = merged(filter(is_intact, entries), entries)
    return {raw.ref: best[raw.ref] for raw in entries}


def _absent(refs: Sequence[str], found: Sequence[RawEntry]) -> list[str]:
    there = {raw.ref for raw in found}
    return [ref for ref in refs if ref not in there]
