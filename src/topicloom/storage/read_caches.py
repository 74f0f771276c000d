"""What was read of a session, kept until something is purged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from topicloom.state.recall import Note
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_ranges import Range, TopicRanges
from topicloom.state.topics import TopicTable
from topicloom.storage.caches import WeighedCache

_CACHED_BYTES = 16_000_000
"""Memory for messages of a session, and as much for lists of them."""
_OVERHEAD = 2_000
"""Bytes of a validated message in memory beside its text and its blocks, roughly."""


class TopicContent(NamedTuple):
    """Which messages a topic has, on which branch, and how they were edited."""

    ranges: tuple[Range, ...] = ()
    newest: str = ""
    """Ref of its newest message in the transcript; "" for none."""
    edited: tuple[tuple[int, str], ...] = ()
    """Numbers of its messages that are superseded, and the refs of the edits that count."""


_Edited = tuple[str | None, str | None]
"""Heads of the ranges and of the edits."""
_Run = TopicContent | tuple[str | None, str | None, int]
"""What a list of messages was read by: what a topic has; for the tail its transcript, what is
superseded, and first."""


class ReadCaches:
    """What was read of a session behind the same purge."""

    def __init__(self, renewals: int) -> None:
        self.renewals = renewals
        self.messages = WeighedCache[str, StoredMessage](_CACHED_BYTES, _weigh)
        self.tables = WeighedCache[str | None, TopicTable](8)
        self.ranges = WeighedCache[str | None, TopicRanges](8)
        self.edited = WeighedCache[_Edited, Mapping[str, tuple[tuple[int, str], ...]]](8)
        self.days = WeighedCache[str | None, Sequence[str]](2)
        self.runs = WeighedCache[_Run, Sequence[StoredMessage]](_CACHED_BYTES, _weigh_all)
        self.notes = WeighedCache[str | None, Sequence[Note]](4)
        self.superseded = WeighedCache[str, Mapping[int, StoredMessage | None]](8)
        self.purged = WeighedCache[str, Mapping[str, StoredMessage]](1)


def _weigh(message: StoredMessage) -> int:
    return len(message.text) + len(repr(message.whole)) + _OVERHEAD


def _weigh_all(messages: Sequence[StoredMessage]) -> int:
    return sum(map(_weigh, messages))
