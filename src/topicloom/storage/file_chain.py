"""One chain in files: a plain part that grows, and archived parts, compressed.

    topics/topic-t1.jsonl                        the plain part
    topics/archived/2026-03/topic-t1.jsonl.xz    what was archived
    topics/archived/2026-03/topic-t1.json        its card

The chain is all of them together; an entry that stands in two of them is one entry. So whatever
moves is first written where it goes, and only then removed from where it was: killed in
between, everything is there, and the same call again finishes. What is appended to an archived
chain begins a plain part anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from topicloom.errors import StorageError
from topicloom.storage.archive_file import ENDING, ArchiveFile
from topicloom.storage.cards import ArchiveCard, is_month
from topicloom.storage.chain import RawEntry, join_line, split_tail
from topicloom.storage.disk import fresh_name, remove_file
from topicloom.storage.jsonl import ChainFile, Place
from topicloom.storage.packing import entries_in
from topicloom.storage.tombstones import is_sound, is_tombstone, merged

_FOLDER = "archived"


class Spot(NamedTuple):
    """Where an entry is."""

    part: ChainFile | ArchiveFile
    place: Place


class FileChain:
    """A chain over its files. Not safe for several threads.

    Methods that write want the session's lock held and `settle` called before. All raise OSError
    where the system does.
    """

    def __init__(self, folder: Path, name: str, *, fsync: bool, reports: list[str]) -> None:
        """A chain, unknown until the first `refresh`.

        Args:
            folder: Where its plain part is.
            name: Safe name of the chain in that folder.
            fsync: Whether a write waits until it would survive a power cut.
            reports: Where to say what was found damaged.
        """
        self.plain = ChainFile(folder / f"{name}.jsonl", fsync=fsync, reports=reports)
        self._shelf = folder / _FOLDER
        self._name = name
        self._fsync = fsync
        self._reports = reports
        self._archives: dict[str, ArchiveFile] = {}

    def spot(self, ref: str) -> Spot | None:
        """Where an entry is, as of the last `refresh`; where it can be read if anywhere."""
        lost = None
        for part in self._parts():
            place = part.places.get(ref)
            if place is not None and place.length:
                return Spot(part, place)
            lost = Spot(part, place) if place is not None else lost
        return lost

    def refs(self) -> dict[str, str | None]:
        """The ref before each ref, of all branches, what was archived first."""
        parts = reversed(self._parts())
        return {ref: place.prev for part in parts for ref, place in part.places.items()}

    def refresh(self) -> bool:
        """Take in what other processes did; whether the plain part ends in a torn line."""
        torn = self.plain.refresh()
        self._look_for_archives()
        return torn

    def settle(self, *, anew: bool = False) -> None:
        """Take in what other processes did, and set a torn last line aside.

        Args:
            anew: Whether to trust nothing that is remembered.
        """
        if anew:
            for part in self._parts():
                part.forget()
        self.plain.repair()
        self._look_for_archives()

    def sweep(self) -> None:
        """Remove what a crash left half-written."""
        remove_file(fresh_name(self.plain.path), fsync=self._fsync)
        for month in _months(self._shelf):
            self._archive_of(month).sweep()
        self._look_for_archives()

    def append(self, entries: Sequence[RawEntry]) -> None:
        """Add those entries that are not there yet, or cannot be read any more, in one write."""
        self.plain.append([raw for raw in entries if not self._is_readable(raw.ref)])

    def read(self, wanted: Sequence[tuple[str, Spot]]) -> Iterator[RawEntry]:
        """Entries as they stand in their files now, unchecked; of one that is not in its place,
        an empty body. Safe beside other threads."""
        parts: dict[int, list[tuple[str, Spot]]] = {}
        for ref, spot in wanted:
            parts.setdefault(id(spot.part), []).append((ref, spot))
        for pairs in parts.values():
            yield from pairs[0][1].part.read([(ref, spot.place) for ref, spot in pairs])

    def card(self) -> ArchiveCard | None:
        """The newest card; None when nothing of the chain is archived."""
        self._look_for_archives()
        return self._archives[max(self._archives)].card() if self._archives else None

    def archive(self, month: str, summary: Mapping[str, Any]) -> bool:
        """Move everything sound into the archive of a month; what is not stays where it is.

        Returns:
            Whether there is anything.

        Raises:
            InputError: The summary is not JSON.
            StorageError: An archive of the chain is damaged; nothing was changed.
        """
        entries = self._sound_entries()
        if not entries:
            return False
        target = self._archive_of(month)
        self._fill(target, [join_line(raw) for raw in entries.values()], summary)
        for other in list(self._archives.values()):
            if other is not target:
                other.remove()
        self._keep_in_plain(entries, [])
        self._look_for_archives()
        return True

    def restore(self) -> None:
        """Move everything back into the plain part; nothing to do where nothing is archived.

        Raises:
            StorageError: An archive of the chain is damaged; nothing was changed.
        """
        if not self._archives:
            return
        entries = self._sound_entries()
        self._keep_in_plain(entries, [join_line(raw) for raw in entries.values()])
        for archive in list(self._archives.values()):
            archive.remove()
        self._look_for_archives()

    def purge(self, tombstones: Mapping[str, RawEntry], summary: Mapping[str, Any]) -> int:
        """Put tombstones in the place of entries, in all parts.

        Args:
            tombstones: By ref.
            summary: Takes the place of the one on the cards.

        Returns:
            How many were none yet.

        Raises:
            StorageError: An archive of the chain cannot be unpacked, so nobody can say what is
                in it; nothing was changed.
        """
        parts = [(part, part.lines()) for part in self._archives.values()]
        plain = self.plain.lines()
        old = [
            raw
            for lines in (*(lines for _, lines in parts), plain)
            for raw in entries_in(lines)
            if raw.ref in tombstones
        ]
        for part, lines in parts:
            part.rewrite(_with(lines, tombstones), summary)
        gone = tombstones.keys() - {raw.ref for raw in old}
        fresh = [*_with(plain, tombstones), *(join_line(tombstones[ref]) for ref in sorted(gone))]
        if fresh != plain:
            self.plain.replace(fresh)
        # Nobody can tell what is in what a crash tore off.
        remove_file(self.plain.torn, fsync=self._fsync)
        return len(gone | {raw.ref for raw in old if not is_tombstone(raw)})

    def _sound_entries(self) -> dict[str, RawEntry]:
        """All entries that are what their refs say, what was archived first.

        Raises:
            StorageError: An archive is damaged, and an entry of it stands nowhere else.
        """
        archived: list[RawEntry] = []
        for part in self._archives.values():
            archived += self._entries_of(part)
        plain = [raw for raw in entries_in(self.plain.lines()) if is_sound(raw)]
        entries = merged(archived, plain)
        for part in self._archives.values():
            if not part.places.keys() <= entries.keys():
                raise StorageError(part.damage or f"{part.path} is damaged")
        return entries

    @staticmethod
    def _entries_of(part: ArchiveFile) -> list[RawEntry]:
        entries = entries_in(part.lines())
        for raw in entries:
            if not is_sound(raw):
                raise StorageError(
                    f"{part.whereabouts(part.places[raw.ref])}: entry {raw.ref} is not what was"
                    " written. Restore the file from a backup"
                )
        return entries

    def _fill(
        self, target: ArchiveFile, lines: Sequence[bytes], summary: Mapping[str, Any]
    ) -> None:
        target.write(lines, summary)
        wanted = entries_in(lines)
        spots = [(raw.ref, target.places.get(raw.ref)) for raw in wanted]
        back = merged(target.read([(ref, place) for ref, place in spots if place]))
        if list(map(back.get, (raw.ref for raw in wanted))) != wanted:
            raise StorageError(
                f"{target.path} could not be read back after it was written; the plain file stays"
            )

    def _keep_in_plain(self, moved: Mapping[str, RawEntry], before: Sequence[bytes]) -> None:
        """Leave `before`, and what was not moved, in the plain part."""
        lines = self.plain.lines()
        fresh = [*before, *(line for line in lines if _ref_of(line) not in moved)]
        if fresh != lines:
            self.plain.replace(fresh)

    def _parts(self) -> list[ChainFile | ArchiveFile]:
        return [self.plain, *self._archives.values()]

    def _is_readable(self, ref: str) -> bool:
        spot = self.spot(ref)
        return spot is not None and spot.place.length > 0

    def _archive_of(self, month: str) -> ArchiveFile:
        archive = self._archives.get(month)
        if archive is None:
            path = self._shelf / month / f"{self._name}{ENDING}"
            archive = ArchiveFile(path, fsync=self._fsync, reports=self._reports)
            self._archives[month] = archive
        return archive

    def _look_for_archives(self) -> None:
        for month in _months(self._shelf):
            self._archive_of(month)
        for month, archive in list(self._archives.items()):
            if archive.exists:
                archive.refresh()
            else:
                del self._archives[month]


def _months(shelf: Path) -> list[str]:
    try:
        return sorted(filter(is_month, os.listdir(shelf)))
    except FileNotFoundError:
        return []


def _ref_of(line: bytes) -> str:
    tail = split_tail(line)
    return tail[0] if tail else ""


def _with(lines: Sequence[bytes], tombstones: Mapping[str, RawEntry]) -> list[bytes]:
    """Lines, those of purged entries replaced."""
    refs = map(_ref_of, lines)
    return [
        join_line(tombstones[ref]) if ref in tombstones else line
        for ref, line in zip(refs, lines, strict=True)
    ]
