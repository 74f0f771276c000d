"""Sessions in any storage, encrypted: entries and vectors are sealed before they get there.

An entry stands there as `{"sealed": <base64>}`, under a keyed hash of its ref and behind one of the
ref before it. So storage neither shows what was said nor whether two sessions say the same. Each
vector is a row of its own with its key, sealed together. `base.py` says how they are marked.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from topicloom.errors import EncryptionError, StorageError
from topicloom.storage.backend import Backend, Batch, Rows
from topicloom.storage.base import TRANSCRIPT, Storage
from topicloom.storage.chain import RawEntry, is_sealed, join_line, split_line
from topicloom.storage.encryption import SEAL_BYTES, EncryptionKeys, PlaceKeys, name_part
from topicloom.storage.log import PURGES, SEALED_MARK
from topicloom.storage.vectors import row_bytes
from topicloom.texts import FilledText

_BEGINS, _ENDS = b'{"sealed":"', b'"}'
_WIDER = SEAL_BYTES // 2
"""Numbers that a vector is longer by once its row is sealed."""


class EncryptedRows(Rows[RawEntry]):
    """The entries of a chain, sealed.

    A damaged entry is still found where it stands, as a plain one would be: as one without a body.
    """

    def __init__(
        self, inner: Rows[RawEntry], keys: PlaceKeys, chain: str, *, reports: list[str], plain: bool
    ) -> None:
        """Damage is added to the reports. With `plain`, entries in the clear are there as well."""
        self._inner = inner
        self._reports = reports
        self._keys = keys
        self._chain = chain
        self._plain = plain

    def scan(self, *, bodies: bool = True) -> list[RawEntry]:
        return self._open_all(self._inner.scan())

    def read(self, keys: Sequence[str]) -> list[RawEntry]:
        found = list(self._inner.read([name for ref in keys for name in self._names(ref)]))
        opened = self._open_all(found, keys)
        if all(raw.body for raw in opened):
            return opened
        return [raw for raw in self._open_all(self._inner.scan(), keys) if raw.ref in set(keys)]

    def append(self, rows: Sequence[RawEntry]) -> None:
        self._inner.append([self._seal(raw) for raw in rows])

    def replace(self, rows: Sequence[RawEntry], remove: Collection[str] = ()) -> None:
        newest = [self._names(raw.ref)[0] for raw in rows]
        there = set(self._open_all(self._inner.read(newest), [raw.ref for raw in rows]))
        gone = {name for raw in rows for name in self._names(raw.ref)[1:]}
        gone |= {name for ref in remove for name in self._names(ref)}
        self._inner.replace([self._seal(raw) for raw in rows if raw not in there], gone)

    def where(self, key: str) -> str:
        names = self._names(key)
        there = {raw.ref for raw in self._inner.read(names)}
        return self._inner.where(next((name for name in names if name in there), names[0]))

    def _names(self, ref: str) -> list[str]:
        """The refs under which an entry may stand; that of the newest key first."""
        return [*self._keys.hide(f"{self._chain}\0{ref}"), *([ref] if self._plain else ())]

    def _seal(self, raw: RawEntry) -> RawEntry:
        ref = self._names(raw.ref)[0]
        prev = self._names(raw.prev)[0] if raw.prev else None
        sealed = self._keys.seal(join_line(raw), name_part(self._chain, ref, prev or ""))
        return RawEntry(ref, prev, _BEGINS + base64.b64encode(sealed) + _ENDS)

    def _open_all(self, found: Iterable[RawEntry], asked: Sequence[str] = ()) -> list[RawEntry]:
        opened, damaged = dict[str, RawEntry](), list[RawEntry]()
        for raw in found:
            if raw.ref == SEALED_MARK:
                continue
            good = self._open(raw)
            if good is None:
                damaged.append(raw)
            # Killed on the way to a new key, an entry may be there by the old one as well.
            elif good.ref not in opened or raw.ref == self._names(good.ref)[0]:
                opened[good.ref] = good
        if damaged:
            refs = {*asked, *opened, *(raw.prev for raw in opened.values() if raw.prev)}
            true = {name: ref for ref in refs for name in self._names(ref)}
            for raw in damaged:
                ref, prev = true.get(raw.ref), raw.prev and true.get(raw.prev)
                if ref and (prev or not raw.prev):
                    opened.setdefault(ref, RawEntry(ref, prev, b""))
                    continue
                # It counts as missing: a chain may not end early.
                place = self._inner.where(raw.ref)
                report = FilledText(
                    "{place}: what is encrypted is not what was written", place=place
                )
                if report not in self._reports:
                    self._reports.append(report)
        return list(opened.values())

    def _open(self, raw: RawEntry) -> RawEntry | None:
        """The entry that is sealed in another; None if it is damaged."""
        if not is_sealed(raw):
            return raw if self._plain else None
        try:
            sealed = base64.b64decode(raw.body[len(_BEGINS) : -len(_ENDS)], validate=True)
            line = self._keys.open(sealed, name_part(self._chain, raw.ref, raw.prev or ""))
        except (ValueError, StorageError) as error:
            if isinstance(error, EncryptionError):
                raise
            return None
        return split_line(line)


class EncryptedBatches(Rows[Batch]):
    """The vectors of an embedding space, each of them sealed with its key.

    Those that cannot be opened count as not there: vectors are made again from the messages.
    """

    def __init__(self, inner: Rows[Batch], keys: PlaceKeys) -> None:
        self._inner = inner
        self._keys = keys

    def scan(self, *, bodies: bool = True) -> list[Batch]:
        return [self._open(batch) for batch in self._inner.scan()]

    def append(self, rows: Sequence[Batch]) -> None:
        # Its key is a hash of what it holds; `Batch.key` lets the place give it another.
        keys = [self._keys.hide(row.key, 32)[0] for row in rows]
        sealed = map(self._seal, rows)
        self._inner.append([s._replace(key=key) for s, key in zip(sealed, keys, strict=True)])

    def replace(self, rows: Sequence[Batch], remove: Collection[str] = ()) -> None:
        self._inner.replace(list(map(self._seal, rows)), remove)

    def where(self, key: str) -> str:
        return self._inner.where(key)

    def _seal(self, batch: Batch) -> Batch:
        rows = _cut(batch.rows, row_bytes(batch.dimension))
        sealed = b"".join(self._keys.seal(row, b"vector") for row in rows)
        return Batch(batch.key, batch.dimension + _WIDER, sealed)

    def _open(self, batch: Batch) -> Batch:
        if batch.dimension <= _WIDER:
            return Batch(batch.key, 0, b"")
        opened = list[bytes]()
        for row in _cut(batch.rows, row_bytes(batch.dimension)):
            try:
                opened.append(self._keys.open(row, b"vector"))
            except (StorageError, EncryptionError):
                continue
        return Batch(batch.key, batch.dimension - _WIDER if opened else 0, b"".join(opened))


def _cut(rows: bytes, size: int) -> Iterator[bytes]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


class EncryptedBackend(Backend):
    """A session in another backend, sealed with keys of its own. It has no copies for people."""

    def __init__(self, inner: Backend, keys: EncryptionKeys, *, plain: bool = False) -> None:
        """With `plain`, what is not encrypted yet is read as well."""
        super().__init__(inner.session)
        self.inner = inner
        self.mutex, self.reports = inner.mutex, inner.reports
        self._keys = keys.derive(f"session\0{inner.session}")
        self._plain = plain
        self._marked = False

    def entries(self, chain: str) -> EncryptedRows:
        self._check()
        return EncryptedRows(
            self.inner.entries(chain), self._keys, chain, reports=self.reports, plain=self._plain
        )

    def batches(self, space: str) -> EncryptedBatches:
        return EncryptedBatches(self.inner.batches(space), self._keys)

    def spaces(self) -> list[EncryptedBatches]:
        return [EncryptedBatches(rows, self._keys) for rows in self.inner.spaces()]

    @contextmanager
    def lock(self, *, create: bool) -> Iterator[None]:
        with self.inner.lock(create=create):
            if create and not self._check():
                self.mark()
            yield

    def remove(self) -> None:
        self.inner.remove()
        self._marked = False

    def sweep(self, chain: str, *, torn: bool = False) -> None:
        self.inner.sweep(chain, torn=torn)

    def mark(self) -> None:
        """Mark the session as encrypted with the key that writes. The caller holds the lock."""
        sealed = base64.b64encode(self._keys.seal(b"topicloom", b"mark"))
        mark = RawEntry(SEALED_MARK, None, _BEGINS + sealed + _ENDS)
        self.inner.entries(PURGES).replace([mark])
        self._marked = True

    def _check(self) -> bool:
        """True if the session is marked.

        Raises:
            EncryptionError: It is encrypted with another key, or not at all.
        """
        if not self._marked:
            for mark in self.inner.entries(PURGES).read([SEALED_MARK]):
                sealed = mark.body[len(_BEGINS) : -len(_ENDS)]
                self._keys.open(base64.b64decode(sealed), b"mark")
                self._marked = True
        if self._marked or self._plain:
            return self._marked
        if any(not is_sealed(raw) for raw in self.inner.entries(TRANSCRIPT).scan()):
            raise EncryptionError(
                "session {session!r} is not encrypted, and a key is set: to encrypt what is there,"
                " run topicloom key encrypt, or call reencrypt(storage)",
                session=self.session,
            )
        return False


class EncryptedStorage(Storage):
    """A storage that encrypts whatever another one keeps.

        storage = EncryptedStorage(FileStorage("sessions"), EncryptionKeys.of(key))

    Names of sessions, times of files, and sizes and numbers of entries stay readable.
    """

    def __init__(self, inner: Storage, keys: EncryptionKeys) -> None:
        """A session of the other storage that is not encrypted yet is refused: see `reencrypt`."""
        super().__init__()
        self.inner = inner
        self.keys = keys

    def backend(self, session: str) -> EncryptedBackend:
        return EncryptedBackend(self.inner.backend(session), self.keys)

    def sessions(self) -> list[str]:
        return self.inner.sessions()

    def lock(self, session: str) -> AbstractContextManager[None]:
        return self.inner.lock(session)
