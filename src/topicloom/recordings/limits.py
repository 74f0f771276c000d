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
LARGEST_ENTRY, MOST_NODES = 500_000_000, 10_000_000
"""Characters of one entry of an export, such as a conversation, and lists and objects in it: each
of these takes about 60 bytes of memory, or more."""
_LARGE = 1 << 24
"""Characters from which an entry is looked at."""


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


def check_entry(text: str) -> None:
    """Raise `NotAConversationError` if the text of one entry would take too much memory."""
    if len(text) < _LARGE:
        return
    nodes = text.count("{") + text.count("[")
    if len(text) > LARGEST_ENTRY or nodes > MOST_NODES:
        raise NotAConversationError(
            f"an entry has {len(text):,} characters or more, and {nodes:,} lists and objects;"
            f" {LARGEST_ENTRY:,} and {MOST_NODES:,} at most are read. Import it in parts"
        )
