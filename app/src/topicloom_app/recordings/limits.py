"""How much an export may hold: a small file may unpack to more than a machine has."""

from __future__ import annotations

import io
from typing import IO

from topicloom import NotAConversationError

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


class UnpacksTooMuchError(NotAConversationError):
    """An export that unpacks to more than is read; nothing of it is imported."""


def most_unpacked(packed: int) -> int:
    """Bytes that an export may unpack to that has `packed` bytes itself."""
    return min(LARGEST_EXPORT, max(UNPACKED_FREE, UNPACKED_TIMES * packed))


def check_unpacked(name: object, size: int, packed: int) -> None:
    """Raise `UnpacksTooMuchError` if what has `packed` bytes unpacks to `size` bytes or more."""
    if size > (most := most_unpacked(packed)):
        raise UnpacksTooMuchError(
            "{name} unpacks to {size:,} bytes of conversations, {most:,} at most are read. If it"
            " is right, unpack it and import the parts",
            name=name,
            size=size,
            most=most,
        )


class LimitedReader(io.RawIOBase):
    """A stream that is unpacked as it is read; raises `UnpacksTooMuchError` past its limit.

    What a packed file says of its own size may be wrong, so the bytes are counted.
    """

    def __init__(self, stream: IO[bytes], name: object, packed: int) -> None:
        """Take the stream, what to call it, and the bytes that the packed file has."""
        self._stream, self._name, self._packed, self._size = stream, name, packed, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._size = self._stream.seek(offset, whence)
        return self._size

    def tell(self) -> int:
        return self._size

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._size += len(data)
        check_unpacked(self._name, self._size, self._packed)
        return len(data)


def check_entry(text: str) -> None:
    """Raise `NotAConversationError` if the text of one entry would take too much memory."""
    if len(text) < _LARGE:
        return
    nodes = text.count("{") + text.count("[")
    if len(text) > LARGEST_ENTRY or nodes > MOST_NODES:
        raise NotAConversationError(
            "an entry has {length:,} characters or more, and {nodes:,} lists and objects;"
            " {most_characters:,} and {most_nodes:,} at most are read. Import it in parts",
            length=len(text),
            nodes=nodes,
            most_characters=LARGEST_ENTRY,
            most_nodes=MOST_NODES,
        )
