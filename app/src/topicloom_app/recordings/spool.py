"""An export on disk in the order of time, so that a large one takes little memory.

A session is one conversation, so its messages have to come in the order in which they were said,
across all files and chats. That order is known only when everything has been read. Until then the
messages are in a private temporary file, and memory holds only their places.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from types import TracebackType
from typing import Any, NamedTuple, Self

from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    messages_from_dict,
    messages_to_dict,
)

from topicloom import StorageUnavailableError
from topicloom.hosting import parse_iso_seconds
from topicloom_app.recordings.exported import ExportedConversation, Mark, Unread

_SITTING = 3_600.0
"""Seconds without a message behind which a conversation of many subjects may be interrupted by
another one: within a sitting, what follows belongs to what was said before."""
_SHOWN_TITLES = 10


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """A conversation of an export, without its messages."""

    number: int
    """Its place among those that were read, from 0."""
    id: str
    title: str | None
    """As in `ExportedConversation`."""
    name: str
    """What to call it: its title, or the name of a person or group; "" if it has neither."""
    format: str
    first_source: str
    """Id of its first message."""
    known: str = ""
    """The id that a session of ours knew it by, where it was exported from one; "" if not."""


class ChatPiece(NamedTuple):
    """Messages of a conversation that follow each other in the session."""

    chat: ChatInfo
    messages: list[BaseMessage]


@dataclass(slots=True)
class ImportSummary:
    """What was found in an export, and what of it was left out or not understood."""

    conversations: int = 0
    """Conversations that have messages."""
    messages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """How many are left out, by what they are."""
    unread: Unread = field(default_factory=Unread)
    """What was not understood."""
    filled: int = 0
    """Messages without a time that have that of the one before or after."""
    undated: int = 0
    """Messages that have the time of the import, as their conversation has no times."""
    formats: Counter[str] = field(default_factory=Counter)
    """Conversations by format."""
    first: str = ""
    """The earliest time, ISO 8601; "" if there is none."""
    last: str = ""
    """The latest time."""
    names: list[str] = field(default_factory=list)
    """What the first conversations are called."""

    def describe(self, recorded: int) -> dict[str, Any]:
        """All of it as JSON, where so many of the messages were recorded, or would be."""
        return {
            "conversations": self.conversations,
            "recorded": recorded,
            "there_already": self.messages - recorded,
            "formats": dict(self.formats),
            "first": self.first,
            "last": self.last,
            "names": self.names,
            "left_out": {reason: n for reason, n in self.skipped.most_common() if n},
            "not_understood": [
                {"what": what, "count": n, "example": self.unread.examples[what]}
                for what, n in self.unread.counts.most_common()
            ],
            "dated_by_neighbours": self.filled,
            "dated_today": self.undated,
        }


class _Place(NamedTuple):
    """Where a piece stands, in the order of the session."""

    time: float
    """Seconds since the epoch; infinite where no time is known."""
    conversation: int
    number: int
    chat: int
    offset: int
    length: int


class ImportSpool:
    """The messages of exports, put in by conversations and taken out in the order of time."""

    def __init__(self, zone: tzinfo | None = None) -> None:
        """Make an empty one. Times are those of a zone: None for the zone of this machine."""
        self.summary, self._zone = ImportSummary(), zone
        with _writable():
            self._file = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed by `close`
        self._places: list[_Place] = []
        self._chats: list[ChatInfo] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def add(self, conversation: ExportedConversation) -> None:
        """Put a conversation in, and count what it leaves out."""
        filled = conversation.fill_times(self._zone)
        found = self.summary
        found.skipped.update(conversation.skipped)
        found.unread.update(conversation.unread)
        if not conversation.messages:
            return
        name = conversation.title or conversation.name
        found.conversations += 1
        found.messages += len(conversation.messages)
        found.filled += filled
        found.formats[conversation.format] += 1
        if name and len(found.names) < _SHOWN_TITLES:
            found.names.append(name)
        whole = conversation.title is not None
        first, time = len(self._chats), -math.inf
        chats = self._begin_chats(conversation, name)
        pieces = _cut(conversation.messages, 0.0 if whole else _SITTING)
        if conversation.marks:
            pieces = _cut_by_marks(conversation)
        for number, piece in enumerate(pieces):
            said = [_read_seconds(message) for message in piece]
            known = [seconds for seconds in said if seconds is not None]
            found.undated += len(piece) - len(known)
            self._note_times(piece)
            # Within a conversation the order is that of the export, whatever its clock says.
            time = max(time, known[0]) if known else (time if time > -math.inf else math.inf)
            place = _Place(time, first, number, chats(piece[0]), 0, 0)
            self._places.append(self._write(place, piece))

    def _begin_chats(
        self, conversation: ExportedConversation, name: str
    ) -> Callable[[BaseMessage], int]:
        """The numbers of the chats of a conversation, by message.

        It is one chat, except in an export of ours: that has several, and messages between them.
        """
        first = conversation.messages[0].id or ""
        fields = conversation.id, conversation.title, name, conversation.format, first
        numbers = dict[str | None, int]()

        def find(message: BaseMessage) -> int:
            mark = conversation.marks.get(message.id or "", Mark(None, begins=False))
            key = mark.chat or (message.id if mark.begins else None)
            if key not in numbers:
                numbers[key] = len(self._chats)
                chat = ChatInfo(numbers[key], *fields)
                if conversation.marks:
                    title = "" if mark.chat else None
                    chat = replace(chat, title=title, known=key or first)
                self._chats.append(chat)
            return numbers[key]

        find(conversation.messages[0])
        return find

    def _note_times(self, piece: Sequence[BaseMessage]) -> None:
        for message in piece:
            time = message.additional_kwargs.get("time", "")
            seconds = parse_iso_seconds(time)
            if seconds is None:
                continue
            earliest, latest = map(parse_iso_seconds, (self.summary.first, self.summary.last))
            if earliest is None or seconds < earliest:
                self.summary.first = time
            if latest is None or seconds > latest:
                self.summary.last = time

    def _write(self, place: _Place, piece: Sequence[BaseMessage]) -> _Place:
        data = json.dumps(messages_to_dict(piece)).encode()
        with _writable():
            offset = self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
        return place._replace(offset=offset, length=len(data))

    def chats(self) -> list[ChatInfo]:
        """The conversations, those that began first first; those without a time come last."""
        began = {p.conversation: p.time for p in self._places if p.number == 0}
        heads = [self._chats[number] for number in began]
        return sorted(heads, key=lambda chat: (began[chat.number], chat.number))

    def pieces(self, chat: ChatInfo | None = None) -> Iterator[ChatPiece]:
        """All messages in the order of time, or those of one conversation."""
        self._places.sort()
        for place in self._places:
            if chat is None or place.conversation == chat.number:
                yield ChatPiece(self._chats[place.chat], self._read(place))

    def _read(self, place: _Place) -> list[BaseMessage]:
        self._file.seek(place.offset)
        return messages_from_dict(json.loads(self._file.read(place.length)))


@contextmanager
def _writable() -> Iterator[None]:
    """Turn an error of the disk with temporary files into one with a way out."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise StorageUnavailableError(
            "reading an export needs a temporary file, which cannot be created: {why}. Set TMPDIR"
            " to a folder that you may write to and that has space left",
            why=why,
        ) from error


def _read_seconds(message: BaseMessage) -> float | None:
    return parse_iso_seconds(message.additional_kwargs.get("time", ""))


def _cut_by_marks(conversation: ExportedConversation) -> Iterator[list[BaseMessage]]:
    """The messages of a session of ours, cut where another conversation goes on or begins."""
    piece, last = list[BaseMessage](), Mark(None, begins=False)
    for message in conversation.messages:
        mark = conversation.marks.get(message.id or "", Mark(None, begins=False))
        if piece and (mark.begins or mark.chat != last.chat):
            yield piece
            piece = []
        piece.append(message)
        last = mark
    if piece:
        yield piece


def _cut(messages: Sequence[BaseMessage], pause: float) -> Iterator[list[BaseMessage]]:
    """Messages in whole rounds; rounds with no longer pause between them stay together."""
    piece, last = list[BaseMessage](), None
    for message in messages:
        seconds = _read_seconds(message)
        apart = seconds is not None and last is not None and seconds - last >= pause
        if piece and isinstance(message, HumanMessage) and apart:
            yield piece
            piece = []
        piece.append(message)
        last = seconds if seconds is not None else last
    if piece:
        yield piece
