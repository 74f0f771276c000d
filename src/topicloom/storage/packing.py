"""The format of an archive: entries packed in blocks, and a card beside them.

Entries are packed in blocks of lines, each an xz stream of its own. Streams one after the other are
what `xz` reads as one file, so an archive can be looked into with `xzcat`. Blocks are small, so
that reading one entry does not unpack a whole history, and damage costs the block that it is in.

The card is a small summary for people, and the refs of what is packed. With these a chain can
still be walked when its archive is damaged or gone.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, NamedTuple

from topicloom.errors import InputError
from topicloom.storage.chain import NO_PREV, RawEntry, encode_json, split_line

BLOCK_BYTES = 2**20
"""Text of a block before packing; a longer entry is a block of its own."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": BLOCK_BYTES}]
_MAGIC = b"\xfd7zXZ\x00"
_REFS = "refs"
_REF = re.compile(r"[0-9a-f]{16}")
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


class PackedBlock(NamedTuple):
    """A block as it was found in packed data."""

    start: int
    """Bytes before it."""
    size: int
    """Bytes of it, packed."""
    text: bytes | None
    """Its lines; None when they cannot be unpacked."""


def pack(lines: Iterable[bytes]) -> list[bytes]:
    """Lines packed into blocks. The same lines give the same bytes."""
    texts: list[bytearray] = []
    for line in lines:
        if not texts or len(texts[-1]) + len(line) > BLOCK_BYTES:
            texts.append(bytearray())
        texts[-1] += line
    return [lzma.compress(bytes(text), filters=_FILTERS) for text in texts]


def unpack(block: bytes) -> bytes | None:
    """The lines of one block; None when it is damaged."""
    blocks = list(blocks_in(block))
    return blocks[0].text if len(blocks) == 1 else None


def blocks_in(data: bytes) -> Iterator[PackedBlock]:
    """The blocks of packed data; after damage it goes on where the next block begins."""
    start = 0
    while start < len(data):
        decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        try:
            text = decoder.decompress(memoryview(data)[start:])
            whole = decoder.eof
        except lzma.LZMAError:
            whole = False
        if whole:
            stop = len(data) - len(decoder.unused_data)
        else:
            following = data.find(_MAGIC, start + 1)
            stop = len(data) if following < 0 else following
        yield PackedBlock(start, stop - start, text if whole else None)
        start = stop


def lines_in(text: bytes) -> list[bytes]:
    """The lines of a text, their newlines included."""
    return list(BytesIO(text))


def entries_in(lines: Iterable[bytes]) -> list[RawEntry]:
    """The entries among some lines, unchecked."""
    return [raw for raw in map(split_line, lines) if raw is not None]


@dataclass(frozen=True, slots=True)
class ArchiveCard:
    """The summary of an archived chain, and its refs."""

    month: str
    """The month it is filed under, `2026-03`."""
    summary: Mapping[str, Any]
    """The archiver's words about it, JSON-native."""
    refs: Mapping[str, str | None] = field(default_factory=dict)
    """The ref before each ref."""


def is_month(text: str) -> bool:
    """True if a text is a month as in `2026-03`."""
    return _MONTH.fullmatch(text) is not None


def card_text(summary: Mapping[str, Any], entries: Iterable[RawEntry]) -> bytes:
    """A card as JSON in UTF-8, for people: indented, the refs last.

    Refs stand in runs, one text each: the ref before the run (zeros for none), then its refs.

    Raises:
        InputError: The summary cannot be JSON, or uses the key `refs`.
    """
    if _REFS in summary:
        raise InputError(f"a summary may not have a key {_REFS!r}: it belongs to the archive")
    return encode_json({**summary, _REFS: _runs(entries)}, "a summary", indent=2) + b"\n"


def read_card(text: bytes, month: str) -> ArchiveCard:
    """A card from its text. Of a damaged one, what can still be made out."""
    try:
        card = json.loads(text)
    except (ValueError, RecursionError):
        card = None
    if not isinstance(card, dict):
        return ArchiveCard(month, {})
    runs = card.pop(_REFS, None)
    refs: dict[str, str | None] = {}
    for run in runs if isinstance(runs, list) else ():
        words = run.split() if isinstance(run, str) else []
        if all(map(_REF.fullmatch, words)):
            refs |= zip(words[1:], (None if w == NO_PREV else w for w in words), strict=False)
    return ArchiveCard(month, card, refs)


def _runs(entries: Iterable[RawEntry]) -> list[str]:
    runs: list[list[str]] = []
    for raw in entries:
        prev = raw.prev or NO_PREV
        if not runs or runs[-1][-1] != prev:
            runs.append([prev])
        runs[-1].append(raw.ref)
    return [" ".join(run) for run in runs]
