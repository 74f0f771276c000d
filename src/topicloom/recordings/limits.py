"""How much an export may hold: a small file may unpack to more than a machine has."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from topicloom.errors import NotAConversationError

LARGEST_EXPORT = 2_000_000_000
"""Bytes of conversations in one export, unpacked."""
UNPACKED_FREE = 64_000_000
"""Bytes that any archive may unpack to."""
UNPACKED_TIMES = 40
"""Times its own size that a larger one may unpack to: conversations are about ten times smaller."""
MOST_NODES = 10_000_000
"""Lists and objects in the JSON of one file: each takes about 60 bytes of memory, or more."""


def check_unpacked(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise `NotAConversationError` if members of an archive unpack to too much.

    An archive cannot lie about it: `zipfile` reads no more bytes than it says.
    """
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    most = min(LARGEST_EXPORT, max(UNPACKED_FREE, UNPACKED_TIMES * packed))
    if size > most:
        raise NotAConversationError(
            f"{path} unpacks to {size:,} bytes of conversations, {most:,} at most are read."
            " If it is right, unpack it and import the parts"
        )


def check_text(path: Path, text: str) -> None:
    """Raise `NotAConversationError` if a text of JSON would take too much memory."""
    nodes = text.count("{") + text.count("[")
    if len(text) > LARGEST_EXPORT or nodes > MOST_NODES:
        raise NotAConversationError(
            f"{path} has {len(text):,} characters and about {nodes:,} lists and objects;"
            f" {LARGEST_EXPORT:,} and {MOST_NODES:,} at most are read. Import it in parts"
        )
