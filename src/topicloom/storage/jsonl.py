"""One chain in one JSONL file: where its entries are, and how more are added."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from topicloom.storage.chain import RawEntry, join_line, split_line, split_tail
from topicloom.storage.disk import append_bytes, sync_file


class Place(NamedTuple):
    """Where an entry is in its file."""

    offset: int
    length: int
    """Bytes, newline included."""
    prev: str | None


@dataclass(slots=True)
class _Seen:
    """What is known of a file."""

    places: dict[str, Place] = field(default_factory=dict)
    inode: int | None = None
    end: int = 0
    """Bytes indexed; always at the end of a line."""
    synced: int = 0
    """Bytes known to survive a power cut."""
    lines: int = 0
    last: str | None = None
    """Ref of the last entry indexed."""


class ChainFile:
    """An index over one file, kept up with what other processes append.

    The index holds offsets and refs and no bodies, and is built without parsing any JSON. Not
    safe for several threads: the log that owns it holds a lock. All methods raise OSError where
    the system does; a file that is not there is an empty chain.
    """

    def __init__(self, path: Path, *, fsync: bool, reports: list[str]) -> None:
        """An index, empty until the first `refresh`.

        Args:
            path: The file, which need not exist.
            fsync: Whether an append waits until it would survive a power cut.
            reports: Where to say what was found damaged.
        """
        self.path = path
        self._fsync = fsync
        self._reports = reports
        self._seen = _Seen()

    def place(self, ref: str) -> Place | None:
        """Where an entry is; None when the file did not have it at the last `refresh`."""
        return self._seen.places.get(ref)

    def refresh(self) -> bool:
        """Index what has been appended since the last time.

        Returns:
            Whether the file ends in the middle of a line: somebody is writing, or has crashed.
        """
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            self._seen = _Seen()
            return False
        if now.st_ino != self._seen.inode or now.st_size < self._seen.end:
            self._seen = _Seen()
        self._seen.inode = now.st_ino
        return now.st_size > self._seen.end and self._scan()

    def repair(self) -> None:
        """Index what is new and set a torn last line aside. The caller holds the session's lock.

        The bytes go to a file of the same name with `.torn` after it: nobody can tell whether
        they are worth anything, so nobody throws them away.
        """
        if not self.refresh():
            return
        with self.path.open("r+b") as file:
            file.seek(self._seen.end)
            torn = file.read()
            aside = self.path.with_name(self.path.name + ".torn")
            append_bytes(aside, torn + b"\n", fsync=self._fsync)
            file.truncate(self._seen.end)
        self._reports.append(
            f"{self.path}: the last line was cut off in the middle; its {len(torn)} bytes were"
            f" moved to {aside.name}"
        )

    def append(self, entries: Sequence[RawEntry]) -> None:
        """Add those entries that are not there yet, in one write.

        The caller holds the session's lock and has called `repair`.
        """
        new = [raw for raw in entries if raw.ref not in self._seen.places]
        if new:
            lines = [join_line(raw) for raw in new]
            append_bytes(self.path, b"".join(lines), fsync=self._fsync)
            self._seen.inode = os.stat(self.path).st_ino
            for line in lines:
                self._index(line)
        elif self._fsync and self._seen.synced < self._seen.end:
            # Whoever wrote these may have crashed before they were safe, and the caller is
            # about to write a checkpoint that counts on them.
            sync_file(self.path)
        self._seen.synced = self._seen.end

    def read(self, places: Iterable[tuple[str, Place]]) -> Iterator[RawEntry]:
        """The entries of refs as they stand in the file now, unchecked."""
        with self.path.open("rb") as file:
            for ref, place in places:
                file.seek(place.offset)
                raw = split_line(file.read(place.length))
                yield RawEntry(ref, place.prev, b"") if raw is None else raw._replace(ref=ref)

    def line_number(self, place: Place) -> int:
        """The number of an entry's line, from 1, as editors count."""
        with self.path.open("rb") as file:
            return file.read(place.offset).count(b"\n") + 1

    def _scan(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(self._seen.end)
            for line in file:
                if not line.endswith(b"\n"):
                    return True
                self._index(line)
        return False

    def _index(self, line: bytes) -> None:
        self._seen.lines += 1
        tail = split_tail(line)
        if tail is None:
            self._reports.append(
                f"{self.path}: line {self._seen.lines} is not an entry and was passed over"
            )
        else:
            ref, prev = tail
            # Refs of neighbours are the same text: one object for both halves the index.
            prev = self._seen.last if prev == self._seen.last else prev
            self._seen.places.setdefault(ref, Place(self._seen.end, len(line), prev))
            self._seen.last = ref
        self._seen.end += len(line)
