"""Entries packed for the archive: blocks of lines, each an xz stream of its own.

Streams one after the other are what `xz` reads as one file, so an archive can be looked into
with `xzcat`. Blocks are small, so that reading one entry does not unpack a whole history, and
damage costs the block that it is in.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import NamedTuple

from topicloom.storage.chain import RawEntry, split_line

BLOCK_BYTES = 2**20
"""Text of a block before packing; a longer entry is a block of its own."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": BLOCK_BYTES}]
_MAGIC = b"\xfd7zXZ\x00"


class Block(NamedTuple):
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


def blocks_in(data: bytes) -> Iterator[Block]:
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
        yield Block(start, stop - start, text if whole else None)
        start = stop


def lines_in(text: bytes) -> list[bytes]:
    """The lines of a text, their newlines included."""
    return list(BytesIO(text))


def entries_in(lines: Iterable[bytes]) -> list[RawEntry]:
    """The entries among some lines, unchecked."""
    return [raw for raw in map(split_line, lines) if raw is not None]
