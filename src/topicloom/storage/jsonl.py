"""The entries of one chain in one JSONL file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from threading import RLock
from typing import BinaryIO

from topicloom.storage.backend import Rows
from topicloom.storage.chain import RawEntry, join_line, split_line, split_tail
from topicloom.storage.disk import (
    append_bytes,
    fresh_name,
    reachable,
    read_file,
    remove_file,
    replace_file,
    sync_file,
)
from topicloom.texts import FilledText


@dataclass(slots=True)
class _FileIndex:
    """An index over a file."""

    offsets: dict[str, int] = field(default_factory=dict)
    """Bytes before the line of each ref."""
    inode: int | None = None
    end: int = 0
    """Bytes indexed; always at the end of a line."""
    synced: int = 0
    """Bytes known to survive a power cut."""
    lines: int = 0
    last: tuple[str, str | None] | None = None
    """Ref and prev of the last entry indexed."""


class ChainFile(Rows[RawEntry]):
    """An index over one file, kept up with what other processes append.

    The index holds offsets and no bodies, and is built without parsing any JSON. That another
    process has rewritten the file is seen by the refs at the ends of the lines. A file that is not
    there is an empty chain.
    """

    def __init__(
        self,
        path: Path,
        *,
        fsync: bool,
        reports: list[str],
        mutex: RLock,
        lock: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """An index, empty until something is read; damage that is found is added to the reports.

        The mutex is held while the index changes, the lock keeps other processes from writing.
        """
        self._path = path
        self._fsync = fsync
        self._reports = reports
        self._mutex = mutex
        self._lock = lock
        self._seen = _FileIndex()

    def scan(self, *, bodies: bool = True) -> list[RawEntry]:
        found: list[RawEntry] = []
        with self._mutex, self._reachable():
            self._seen = _FileIndex()
            self._refresh(lambda raw: found.append(raw if bodies else RawEntry(*raw[:2], b"")))
        return found

    def read(self, keys: Sequence[str]) -> list[RawEntry]:
        with self._reachable():
            seen = self._seen
            found = list(self._at(seen, keys))
            if len(found) < len(keys):
                there = {raw.ref for raw in found}
                absent = [ref for ref in keys if ref not in there]
                with self._mutex:
                    if any(ref in seen.offsets for ref in absent):
                        self._seen = _FileIndex()
                    self._refresh()
                    found += self._at(self._seen, absent)
        return found

    def append(self, rows: Sequence[RawEntry]) -> None:
        with self._mutex, self._reachable():
            self._refresh()
            path = self._path
            lines = [join_line(raw) for raw in rows if raw.ref not in self._seen.offsets]
            if lines:
                append_bytes(path, b"".join(lines), fsync=self._fsync)
                self._seen.inode = os.stat(path).st_ino
                for line in lines:
                    self._index(line)
            elif self._fsync and self._seen.synced < self._seen.end:
                # The process that wrote these may have crashed before they were safe, and the
                # caller is about to write a checkpoint that counts on them.
                sync_file(path)
            self._seen.synced = self._seen.end

    def replace(self, rows: Sequence[RawEntry], remove: Collection[str] = ()) -> None:
        """Rewrite the file, or remove it when nothing is left; see `Rows.replace`.

        New entries come before the others. Lines that are no entries stay.
        """
        fresh = {raw.ref: raw for raw in rows}
        with self._mutex, self._reachable():
            self._refresh()
            path = self._path
            old = list(BytesIO(read_file(path) or b""))
            refs = [(split_tail(line) or ("",))[0] for line in old]
            lines = [join_line(raw) for ref, raw in fresh.items() if ref not in set(refs)]
            for ref, line in zip(refs, old, strict=True):
                if ref not in remove:
                    lines.append(join_line(fresh[ref]) if ref in fresh else line)
            if lines == old:
                return
            if lines:
                replace_file(path, b"".join(lines), fsync=self._fsync)
            else:
                remove_file(path, fsync=self._fsync)
            self._seen = _FileIndex()
            self._refresh()
            self._seen.synced = self._seen.end

    def where(self, key: str) -> str:
        with reachable(self._path), self._path.open("rb") as file:
            number = file.read(self._seen.offsets[key]).count(b"\n") + 1
        return f"{self._path}, line {number}"

    def sweep(self, *, torn: bool) -> None:
        with self._mutex, self._reachable():
            self._refresh()
            remove_file(fresh_name(self._path), fsync=self._fsync)
            if torn:
                remove_file(self._torn, fsync=self._fsync)

    def _reachable(self) -> AbstractContextManager[None]:
        return reachable(self._path)

    @property
    def _torn(self) -> Path:
        """The file that a line is moved to which a crash tore."""
        return self._path.with_name(self._path.name + ".torn")

    def _open(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None

    def _at(self, seen: _FileIndex, refs: Sequence[str]) -> Iterator[RawEntry]:
        """Those of some entries that stand where they were seen."""
        offsets = [seen.offsets[ref] for ref in refs if ref in seen.offsets]
        if not offsets:
            return
        wanted = set(refs)
        file = self._open()
        if file is None:
            return
        with file:
            for offset in offsets:
                # Another process may have written the file anew: a line may begin elsewhere.
                file.seek(max(offset - 1, 0))
                if offset and file.read(1) != b"\n":
                    continue
                raw = split_line(file.readline())
                if raw is not None and raw.ref in wanted:
                    yield raw

    def _refresh(self, visit: Callable[[RawEntry], None] | None = None) -> None:
        """Index what is new, passing every entry to `visit`, and set a torn last line aside."""
        if self._index_new(visit):
            # The end of a line is missing: another process is writing, or has crashed. With the
            # lock held, none is writing.
            with self._lock():
                if self._index_new(visit):
                    self._repair()

    def _index_new(self, visit: Callable[[RawEntry], None] | None) -> bool:
        """Index what is new; True if the file ends in the middle of a line."""
        file = self._open()
        if file is None:
            self._seen = _FileIndex()
            return False
        with file:
            now, seen = os.fstat(file.fileno()), self._seen
            if now.st_ino != seen.inode or now.st_size < seen.end or not self._agrees(file, now):
                self._seen = _FileIndex()
            self._seen.inode = now.st_ino
            if now.st_size == self._seen.end:
                return False
            file.seek(self._seen.end)
            for line in file:
                if not line.endswith(b"\n"):
                    return True
                raw = self._index(line)
                if raw is not None and visit is not None:
                    visit(raw)
        return False

    def _agrees(self, file: BinaryIO, now: os.stat_result) -> bool:
        """True if the last line indexed still stands where it did."""
        last = self._seen.last
        if last is None or now.st_size == self._seen.end:
            return True
        file.seek(self._seen.offsets[last[0]])
        return split_tail(file.readline()) == last

    def _repair(self) -> None:
        """Move a torn last line to a file of its own: its bytes may be worth something."""
        path, aside = self._path, self._torn
        with path.open("r+b") as file:
            file.seek(self._seen.end)
            torn = file.read()
            append_bytes(aside, torn + b"\n", fsync=self._fsync)
            file.truncate(self._seen.end)
        self._reports.append(
            FilledText(
                "{path}: the last line was cut off in the middle; its {size} bytes were moved to"
                " {name}",
                path=path,
                size=len(torn),
                name=aside.name,
            )
        )

    def _index(self, line: bytes) -> RawEntry | None:
        seen = self._seen
        seen.lines += 1
        raw = split_line(line)
        if raw is None:
            report = FilledText(
                "{path}: line {number} is not an entry and was passed over",
                path=self._path,
                number=seen.lines,
            )
            if report not in self._reports:
                self._reports.append(report)
        else:
            if seen.last is not None and raw.prev == seen.last[0]:
                # Refs of neighbours are the same text: one object for both halves the index.
                raw = RawEntry(raw.ref, seen.last[0], raw.body)
            seen.offsets.setdefault(raw.ref, seen.end)
            seen.last = (raw.ref, raw.prev)
        seen.end += len(line)
        return raw
