"""One chain in one JSONL file: where its entries are, and how more are added."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from topicloom.storage.chain import RawEntry, join_line, split_line, split_tail
from topicloom.storage.disk import append_bytes, remove_file, replace_file, sync_file
from topicloom.storage.packing import lines_in


class Place(NamedTuple):
    """Where an entry is in its file."""

    offset: int
    """Bytes before it; in an archive, in the text of its block."""
    length: int
    """Bytes, newline included; 0 for an entry that is known of but not there any more."""
    prev: str | None
    block: tuple[int, int] = (0, 0)
    """In an archive, where the block is: bytes before it, and its size."""


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
    last_place: Place | None = None


class ChainFile:
    """An index over one file, kept up with what other processes append.

    The index holds offsets and refs and no bodies, and is built without parsing any JSON. Where
    another process has rewritten the file, the index is found out by the refs at the ends of the
    lines. Not safe for several threads: the log that owns it holds a lock. All methods raise
    OSError where the system does; a file that is not there is an empty chain.
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

    @property
    def places(self) -> Mapping[str, Place]:
        """The entries that the file had at the last `refresh`, in its order."""
        return self._seen.places

    @property
    def torn(self) -> Path:
        """Where torn lines are set aside."""
        return self.path.with_name(self.path.name + ".torn")

    def forget(self) -> None:
        """Have the next `refresh` look at the whole file again."""
        self._seen = _Seen()

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
        if now.st_ino != self._seen.inode or now.st_size < self._seen.end or not self._agrees(now):
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
            append_bytes(self.torn, torn + b"\n", fsync=self._fsync)
            file.truncate(self._seen.end)
        self._reports.append(
            f"{self.path}: the last line was cut off in the middle; its {len(torn)} bytes were"
            f" moved to {self.torn.name}"
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

    def read(self, wanted: Sequence[tuple[str, Place]]) -> Iterator[RawEntry]:
        """Entries as they stand in the file now, unchecked; of one that is not in its place, an
        empty body."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            yield from (RawEntry(ref, place.prev, b"") for ref, place in wanted)
            return
        with file:
            for ref, place in wanted:
                file.seek(place.offset)
                yield entry_at(ref, place, file.read(place.length))

    def whereabouts(self, place: Place) -> str:
        """The file and the number of an entry's line, from 1, as editors count."""
        with self.path.open("rb") as file:
            number = file.read(place.offset).count(b"\n") + 1
        return f"{self.path}, line {number}"

    def lines(self) -> list[bytes]:
        """The file's lines. The caller holds the session's lock and has called `repair`."""
        try:
            return lines_in(self.path.read_bytes())
        except FileNotFoundError:
            return []

    def replace(self, lines: Sequence[bytes]) -> None:
        """Put other lines in the place of all; without any, the file goes away.

        The caller holds the session's lock.
        """
        if lines:
            replace_file(self.path, b"".join(lines), fsync=self._fsync)
        else:
            remove_file(self.path, fsync=self._fsync)
        self.forget()
        self.refresh()
        self._seen.synced = self._seen.end

    def _agrees(self, now: os.stat_result) -> bool:
        """Whether the last line indexed still stands where it did."""
        place = self._seen.last_place
        if place is None or now.st_size == self._seen.end:
            return True
        with self.path.open("rb") as file:
            file.seek(place.offset)
            return split_tail(file.read(place.length)) == (self._seen.last, place.prev)

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
            report = f"{self.path}: line {self._seen.lines} is not an entry and was passed over"
            if report not in self._reports:
                self._reports.append(report)
        else:
            ref, prev = tail
            # Refs of neighbours are the same text: one object for both halves the index.
            prev = self._seen.last if prev == self._seen.last else prev
            place = Place(self._seen.end, len(line), prev)
            self._seen.places.setdefault(ref, place)
            self._seen.last, self._seen.last_place = ref, place
        self._seen.end += len(line)


def entry_at(ref: str, place: Place, line: bytes) -> RawEntry:
    """The entry that a line is; when it is not the one that was looked for, an empty body."""
    raw = split_line(line)
    return RawEntry(ref, place.prev, b"") if raw is None or raw.ref != ref else raw
