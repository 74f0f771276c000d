"""The archive of one chain: its packed entries, and its damage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topicloom.errors import StorageError
from topicloom.storage.backend import Pack, Rows
from topicloom.storage.chain import RawEntry, is_intact, join_line, merged, split_line, split_tail
from topicloom.storage.packing import (
    ArchiveCard,
    blocks_in,
    card_text,
    entries_in,
    lines_in,
    pack,
    read_card,
    unpack,
)


class Archive:
    """An index over the packs of a chain. Not safe for several threads.

    Entries that a card lists and its pack does not give are known, though they cannot be read. The
    index may be out of date: `load` brings it up to date.
    """

    def __init__(self, packs: Rows[Pack], reports: list[str]) -> None:
        """An archive, unknown until the first `load`; damage is added to the reports."""
        self.prevs: dict[str, str | None] = {}
        """The ref before each ref that can be read."""
        self.lost: dict[str, str | None] = {}
        """The ref before each ref that is known to have been there, and is not."""
        self.loaded = False
        self.exists = False
        """True if there was anything at the last look."""
        self.damage: str | None = None
        """The first fault found, and the way out."""
        self._packs = packs
        self._reports = reports
        self._unreadable = False

    def load(self) -> None:
        self._index(list(self._packs.scan()))

    def card(self) -> ArchiveCard | None:
        """The newest card; None when nothing of the chain is archived."""
        packs = list(self._packs.scan(bodies=False))
        newest = max(packs, key=lambda one: one.month, default=None)
        return None if newest is None else read_card(newest.card, newest.month)

    def read(self, refs: Sequence[str]) -> Iterator[RawEntry]:
        """Those of some entries that the index has and that are there, unchecked."""
        wanted = {ref for ref in refs if ref in self.prevs}
        for one in self._packs.scan() if wanted else ():
            for raw in entries_in(_lines_in(one)):
                if raw.ref in wanted:
                    wanted.discard(raw.ref)
                    yield raw
                    if not wanted:
                        return

    def entries(self) -> list[RawEntry]:
        """All entries but for lost ones, unchecked; raises StorageError at damage."""
        packs = list(self._packs.scan())
        self._index(packs)
        if self._unreadable:
            raise StorageError(self.damage)
        return [raw for one in packs for raw in entries_in(_lines_in(one))]

    def intact_entries(self) -> list[RawEntry]:
        """All entries, but for lost ones.

        Raises:
            StorageError: Some cannot be unpacked, or are not what was written.
        """
        entries = self.entries()
        for raw in entries:
            if not is_intact(raw):
                raise StorageError(
                    f"{self.where(raw.ref)}: entry {raw.ref} is not what was written. Restore it"
                    " from a backup"
                )
        return entries

    def write(self, month: str, entries: Sequence[RawEntry], summary: Mapping[str, Any]) -> None:
        """Make the archive hold just these entries.

        Raises:
            InputError: The summary is not JSON.
            StorageError: They could not be packed, or not be read back.
        """
        self._packs.replace([_pack(month, entries, card_text(summary, entries))])
        self.load()
        back = {raw.ref: raw for raw in self.read([raw.ref for raw in entries])}
        if list(map(back.get, (raw.ref for raw in entries))) != list(entries):
            raise StorageError(
                f"{self._packs.where(month)} could not be read back after it was written; nothing"
                " else was changed"
            )
        self._remove([p.month for p in self._packs.scan(bodies=False) if p.month != month])

    def purge(self, tombstones: Mapping[str, RawEntry], summary: Mapping[str, Any]) -> None:
        """Put tombstones in the place of entries, and another summary in that of the old one.

        Refs stay on the card, and what is lost stays lost.
        """
        for one in list(self._packs.scan()):
            entries = merged(tombstones.get(raw.ref, raw) for raw in entries_in(_lines_in(one)))
            listed = read_card(one.card, one.month).refs.items()
            card = card_text(summary, [RawEntry(ref, prev, b"") for ref, prev in listed])
            fresh = _pack(one.month, list(entries.values()), card if one.card else b"")
            self._packs.replace([fresh._replace(missing=one.missing)])
        self.load()

    def remove(self) -> None:
        self._remove([one.month for one in self._packs.scan()])

    def where(self, ref: str) -> str:
        """The pack that an entry is in, and the number of its line once that is unpacked."""
        for one in self._packs.scan():
            for number, line in enumerate(_lines_in(one), start=1):
                if (split_tail(line) or ("",))[0] == ref:
                    place = self._packs.where(one.month)
                    return f"{place}, line {number} of what is packed in it"
        return "the archive"

    def _remove(self, months: Sequence[str]) -> None:
        if months:
            self._packs.replace([], remove=months)
            self.load()

    def _index(self, packs: Sequence[Pack]) -> None:
        self.loaded, self.exists = True, bool(packs)
        self.prevs, self.lost = {}, {}
        self.damage, self._unreadable = None, False
        for one in packs:
            faults = list(self._enter(one))
            listed = read_card(one.card, one.month).refs
            lost = {ref: prev for ref, prev in listed.items() if ref not in self.prevs}
            if lost and not faults and not one.missing:
                faults = ["was changed by hand"]
            self._unreadable = self._unreadable or bool(faults)
            self.lost |= lost
            self._report(one, faults, len(lost))
        self.lost = {ref: prev for ref, prev in self.lost.items() if ref not in self.prevs}

    def _enter(self, one: Pack) -> Iterator[str]:
        """Enter the entries of a pack; yields its faults."""
        for number, packed in enumerate(one.blocks):
            if not packed:
                yield f"cannot be unpacked at its block {number + 1}"
            for block in blocks_in(packed):
                if block.text is None:
                    yield f"cannot be unpacked from byte {block.start} of block {number + 1} on"
                for line in lines_in(block.text or b""):
                    raw = split_line(line)
                    if raw is None:
                        yield "holds a line that is not an entry"
                    else:
                        self.prevs.setdefault(raw.ref, raw.prev)

    def _report(self, one: Pack, faults: Sequence[str], lost: int) -> None:
        absent = [f"has lost {name}" if one.blocks else "is missing" for name in one.missing]
        for fault in [*faults, *absent][:1]:
            damage = (
                f"{self._packs.where(one.month)} {fault}; {lost} of the entries it is known to"
                " hold cannot be read from it. Restore it from a backup; until then messages are"
                " taken from the transcript, and the chain can be neither restored nor archived"
            )
            self.damage = self.damage or damage
            if damage not in self._reports:
                self._reports.append(damage)


def _pack(month: str, entries: Sequence[RawEntry], card: bytes) -> Pack:
    lines = [join_line(raw) for raw in entries]
    blocks = pack(lines)
    if b"".join(unpack(block) or b"" for block in blocks) != b"".join(lines):
        raise StorageError(f"a chain could not be packed for {month}; nothing was changed")
    return Pack(month, card, tuple(blocks))


def _lines_in(one: Pack) -> Iterator[bytes]:
    for packed in one.blocks:
        for block in blocks_in(packed):
            yield from lines_in(block.text or b"")
