"""Reads what earlier versions packed of archived chains. No version packs anything any more.

Entries were packed as lines, in one xz stream after another, with a summary beside them: JSON for
people, which also lists the refs of what is packed. A listed entry that cannot be unpacked is read
from the transcript. At the first write to such a chain its entries go into a plain file
(`chains.StoredChain`).
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable
from io import BytesIO
from typing import NamedTuple

from topicloom.storage.chain import NO_PREV, RawEntry, merged, split_line
from topicloom.texts import FilledText

_REF = re.compile(r"[0-9a-f]{16}")


class OldArchive(NamedTuple):
    """Entries of a chain that stand in an archive of an earlier version, or in a second file."""

    place: str
    """Where it is, for people who look for it."""
    entries: list[RawEntry]
    """What is in it. A listed entry that cannot be read has an empty body."""
    damage: str = ""
    """What is wrong with it; "" for nothing."""
    listed: bool = True
    """True if all that cannot be read is among the entries."""

    def explain(self) -> str:
        """The damage, what follows from it, and the way out."""
        lost = sum(not raw.body for raw in self.entries)
        return FilledText(
            "{place} {damage}; {lost} of the entries it is known to hold cannot be read"
            " from it. Restore it from a backup; until then messages are taken from the"
            " transcript, and the topic can be neither moved nor purged. If there is no backup,"
            " remove it with all that bears its name, and repair the session",
            place=self.place,
            damage=self.damage,
            lost=lost,
        )


def read_lines(place: str, text: bytes) -> OldArchive:
    """The entries of a plain file."""
    return OldArchive(place, [raw for raw in map(split_line, BytesIO(text)) if raw is not None])


def read_pack(place: str, blocks: Iterable[bytes], summary: bytes, missing: str = "") -> OldArchive:
    """The entries in packed blocks; `missing` says which blocks are not there."""
    lines, damage = list[bytes](), missing
    for block in blocks:
        text, whole = _unpack(block)
        lines += BytesIO(text)
        damage = damage or ("" if whole else "cannot be unpacked")
    entries = merged(filter(None, map(split_line, lines)))
    listed = _read_refs(summary)
    lost = {ref: prev for ref, prev in listed.items() if ref not in entries}
    if lost and not damage:
        damage = "was changed by hand"
    found = [*entries.values(), *(RawEntry(ref, prev, b"") for ref, prev in lost.items())]
    return OldArchive(place, found, damage, bool(lost) or not damage)


def _unpack(data: bytes) -> tuple[bytes, bool]:
    """The text of streams up to the first damage, and whether there is none."""
    text = bytearray()
    while data:
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        try:
            block = decoder.decompress(data)
        except lzma.LZMAError:
            return bytes(text), False
        if not decoder.eof:
            return bytes(text), False
        text += block
        data = decoder.unused_data
    return bytes(text), True


def _read_refs(summary: bytes) -> dict[str, str | None]:
    """The ref before each listed ref. They stand in runs: the ref before a run, then its refs."""
    try:
        runs = json.loads(summary)["refs"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}
    refs: dict[str, str | None] = {}
    for run in runs if isinstance(runs, list) else ():
        words = run.split() if isinstance(run, str) else []
        if all(map(_REF.fullmatch, words)):
            refs |= zip(words[1:], (None if w == NO_PREV else w for w in words), strict=False)
    return refs
