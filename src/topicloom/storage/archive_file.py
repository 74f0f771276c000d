"""One archived chain, or a part of one: a compressed file and its card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from topicloom.errors import StorageError
from topicloom.storage.cards import ArchiveCard, card_text, read_card
from topicloom.storage.chain import RawEntry, split_tail
from topicloom.storage.disk import fresh_name, remove_file, replace_file
from topicloom.storage.jsonl import Place, entry_at
from topicloom.storage.packing import blocks_in, entries_in, lines_in, pack, unpack

ENDING = ".jsonl.xz"
"""What the name of an archive ends with; of its card, `.json`."""


class ArchiveFile:
    """An index over an archive, made anew when the file has changed.

    What the card lists and the file does not give is known of, though it cannot be read. Not
    safe for several threads. All methods raise OSError where the system does; a file that is
    not there holds nothing.
    """

    def __init__(self, path: Path, *, fsync: bool, reports: list[str]) -> None:
        """An index, empty until the first `refresh`.

        Args:
            path: The compressed file, in the folder of its month.
            fsync: Whether to wait until what is written would survive a power cut.
            reports: Where to say what was found damaged.
        """
        self.path = path
        self.places: Mapping[str, Place] = {}
        self.damage: str | None = None
        """What is wrong with the file, and the way out."""
        self._card_path = path.with_name(path.name.removesuffix(ENDING) + ".json")
        self._fsync = fsync
        self._reports = reports
        self._state: object = None

    @property
    def exists(self) -> bool:
        """Whether there is a file or a card."""
        return self.path.exists() or self._card_path.exists()

    def forget(self) -> None:
        """Have the next `refresh` look at the whole file again."""
        self._state = None

    def refresh(self) -> None:
        """Index the file, unless it is the one that was indexed last."""
        state = (_state_of(self.path), _state_of(self._card_path))
        if state != self._state:
            self._state = state
            self._load()

    def read(self, wanted: Sequence[tuple[str, Place]]) -> Iterator[RawEntry]:
        """Entries as they stand in the file now, unchecked; of one that is not there, an empty
        body."""
        blocks: dict[tuple[int, int], list[tuple[str, Place]]] = {}
        for ref, place in wanted:
            blocks.setdefault(place.block, []).append((ref, place))
        for (start, size), pairs in blocks.items():
            text = self._text(start, size)
            for ref, place in pairs:
                line = text[place.offset : place.offset + place.length]
                yield entry_at(ref, place, line)

    def whereabouts(self, place: Place) -> str:
        """The file, and the number of an entry's line once the file is unpacked."""
        before = sum(
            0 if block.text is None else block.text.count(b"\n")
            for block in blocks_in(self.path.read_bytes() if self.path.exists() else b"")
            if block.start < place.block[0]
        )
        text = self._text(*place.block)[: place.offset]
        number = before + text.count(b"\n") + 1
        return f"{self.path}, line {number} of what is packed in it"

    def card(self) -> ArchiveCard:
        """The card; an empty one when it is not there."""
        try:
            text = self._card_path.read_bytes()
        except FileNotFoundError:
            text = b""
        return read_card(text, self.path.parent.name)

    def lines(self) -> list[bytes]:
        """All lines.

        Raises:
            StorageError: Some cannot be unpacked.
        """
        self.refresh()
        if self.damage is not None and self.path.exists():
            raise StorageError(self.damage)
        data = self.path.read_bytes() if self.path.exists() else b""
        return [line for block in blocks_in(data) for line in lines_in(block.text or b"")]

    def write(self, lines: Sequence[bytes], summary: Mapping[str, Any]) -> None:
        """Make the file and its card; what is as it should be already is left alone.

        Raises:
            InputError: The summary is not JSON.
            StorageError: What was packed does not give the lines back; nothing was changed.
        """
        card = card_text(summary, entries_in(lines))
        self._put(self.path, self._packed(lines))
        self._put(self._card_path, card)
        self.refresh()

    def rewrite(self, lines: Sequence[bytes], summary: Mapping[str, Any]) -> None:
        """Put other bodies in, and another summary; refs stay, and what is not there stays away.

        Raises:
            InputError: The summary is not JSON.
            StorageError: What was packed does not give the lines back; nothing was changed.
        """
        refs = self.card().refs
        listed = [RawEntry(ref, prev, b"") for ref, prev in refs.items()]
        if self.path.exists():
            self._put(self.path, self._packed(lines))
        if self._card_path.exists():
            self._put(self._card_path, card_text(summary, listed))
        self.refresh()

    def remove(self) -> None:
        """Remove the card, then the file: a card alone would say that the file is missing."""
        remove_file(self._card_path, fsync=self._fsync)
        remove_file(self.path, fsync=self._fsync)
        self.refresh()

    def sweep(self) -> None:
        """Remove what a crash left half-written. The caller holds the session's lock."""
        for path in (self.path, self._card_path):
            remove_file(fresh_name(path), fsync=self._fsync)

    def _packed(self, lines: Sequence[bytes]) -> bytes:
        blocks = pack(lines)
        if b"".join(unpack(block) or b"" for block in blocks) != b"".join(lines):
            raise StorageError(f"{self.path} could not be packed; nothing was changed")
        return b"".join(blocks)

    def _put(self, path: Path, data: bytes) -> None:
        if not path.exists() or path.read_bytes() != data:
            replace_file(path, data, fsync=self._fsync)

    def _load(self) -> None:
        places: dict[str, Place] = {}
        faults: list[str] = []
        if self.path.exists():
            faults = list(_index(self.path.read_bytes(), places))
        refs = self.card().refs
        lost = {ref: Place(0, 0, prev) for ref, prev in refs.items() if ref not in places}
        self.places = {**places, **lost}
        if lost and not faults:
            faults = ["is missing" if not self.path.exists() else "was changed by hand"]
        self.damage = _damage(self.path, faults[0], len(lost)) if faults else None
        if self.damage is not None and self.damage not in self._reports:
            self._reports.append(self.damage)

    def _text(self, start: int, size: int) -> bytes:
        if not size:
            return b""
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return unpack(file.read(size)) or b""
        except FileNotFoundError:
            return b""


def _index(data: bytes, places: dict[str, Place]) -> Iterable[str]:
    """Enter the entries of an archive into `places`; says what is wrong with it."""
    for block in blocks_in(data):
        if block.text is None:
            yield f"cannot be unpacked from byte {block.start} on"
            continue
        offset = 0
        for line in lines_in(block.text):
            tail = split_tail(line)
            if tail is None:
                yield "holds a line that is not an entry"
            else:
                ref, prev = tail
                place = Place(offset, len(line), prev, (block.start, block.size))
                places.setdefault(ref, place)
            offset += len(line)


def _damage(path: Path, fault: str, lost: int) -> str:
    return (
        f"{path} {fault}; {lost} of the entries it is known to hold cannot be read from it."
        " Restore it from a backup; until then messages are taken from the transcript, and the"
        " chain can be neither restored nor archived"
    )


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        now = path.stat()
    except FileNotFoundError:
        return None
    return now.st_ino, now.st_size, now.st_mtime_ns
