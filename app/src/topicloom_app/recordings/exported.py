"""A conversation of an export: what was said in it, what is left out, what was not understood."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from pydantic import ValidationError

from topicloom import InputError, StoredMessage
from topicloom.hosting import NAME_LIMIT, PATH_SEPARATOR, clip, has_content, make_storable
from topicloom_app.recordings.times import place_time, read_time

INSTRUCTIONS = "instructions and settings"
REASONING = "reasoning"
CALLS = "calls of tools"
RESULTS = "results of tools"
BRANCHES = "other branches, edited or answered again"
EMPTY = "without a text"
HIDDEN = "hidden"
"""Why something is left out."""
UNREAD_TIMES = "times that cannot be read"
UNREAD_DAYS = "days that can be read in two ways (--day-first or --month-first tells which)"
UNREAD_MESSAGES = "messages of another form"
UNREAD_CONVERSATIONS = "conversations of another form"
"""What is not understood."""

UNREADABLE = (
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
    OverflowError,
)
"""What is raised where a file is not as expected."""


@dataclass(slots=True)
class Unread:
    """What of an export was not understood."""

    counts: Counter[str] = field(default_factory=Counter)
    """How many, by what it is."""
    examples: dict[str, str] = field(default_factory=dict)
    """The first of each: where it stands and what is unexpected."""

    def add(self, what: str, example: str) -> None:
        """Count one more of a kind."""
        self.counts[what] += 1
        self.examples.setdefault(what, example)

    def update(self, other: Unread) -> None:
        """Add all of another."""
        self.counts.update(other.counts)
        self.examples = {**other.examples, **self.examples}


class Mark(NamedTuple):
    """To which conversation a message of a session of ours belongs, and whether it begins one."""

    chat: str | None
    """As in `StoredMessage`."""
    begins: bool


@dataclass(slots=True)
class ExportedConversation:
    """A conversation of an export: what was said in it, on the branch that was shown last."""

    id: str
    title: str | None = None
    """Its title, "" if it has none that says anything; None in formats whose conversations may have
    many subjects."""
    name: str = ""
    """What to call it where it has no title: the name of a person or of a group."""
    format: str = ""
    """The format that it was read as: `chatgpt`."""
    place: str = ""
    """Where it stands in the export, for a report."""
    marks: dict[str, Mark] = field(default_factory=dict)
    """Of a session of ours: what its messages are marked with, by their ids."""
    own_times: bool = False
    """True if its times stay as they are written: they are those of a session of ours."""
    began_at: object = None
    """When it began, in any form, if the export says so."""
    messages: list[BaseMessage] = field(default_factory=list)
    """In order, each with an id and, where the export has it, `additional_kwargs["time"]`."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many of its messages are left out, by what they are."""
    unread: Unread = field(default_factory=Unread)
    """What of it was not understood."""
    _count: int = field(default=0, init=False)
    _ids: set[str] = field(default_factory=set, init=False)

    @property
    def began(self) -> str:
        """The time of its first message; "" if the export has none."""
        times = (m.additional_kwargs.get("time", "") for m in self.messages)
        return next(filter(None, times), "")

    @contextmanager
    def reading(self, part: str, what: str = UNREAD_MESSAGES) -> Iterator[None]:
        """Read a part of it: if that is of another form it is reported, and the others go on."""
        try:
            yield
        except UNREADABLE as error:
            self._count += 1  # so that the next ones have the names that they have when it is whole
            self.report(what, part, _explain(error))

    def report(self, what: str, *where: str) -> None:
        """Report something that was not understood, and where it stands."""
        self.unread.add(what, ", ".join(filter(None, [self.place, *where])))

    def say(
        self, role: str, id_: object, time: object, text: str, *, speaker: str | None = None
    ) -> None:
        """Add what the user or the assistant said, at a time in any form."""
        kind = AIMessage if role == "assistant" else HumanMessage
        message = kind(text, id=str(id_) if id_ else None, name=speaker or None)
        self.add(message, time)

    def add(self, message: BaseMessage, time: object = None) -> None:
        """Add a message, under an id that no other one of the conversation has.

        Raises:
            InputError: It has no form that can be kept: it is damaged.
        """
        message = make_storable(message)
        if isinstance(message, RemoveMessage) or not has_content(message):
            self.skipped[EMPTY] += 1
            return
        self._count += 1
        name = message.id or f"{self.id}-{self._count}"
        if name in self._ids:
            name = f"{name}-{self._count}"
        self._ids.add(name)
        extra = {k: v for k, v in message.additional_kwargs.items() if k != "time"}
        if said := self._read_time(name, time):
            extra["time"] = said
        self.messages.append(message.model_copy(update={"id": name, "additional_kwargs": extra}))

    def add_as_stored(self, stored: StoredMessage) -> None:
        """Add a message of a session of ours: its time stays as it is written, and its marks."""
        count = len(self.messages)
        self.add(stored.message)
        if len(self.messages) == count:
            return
        kept = self.messages[-1]
        if stored.time:
            extra = {**kept.additional_kwargs, "time": stored.time}
            self.messages[-1] = kept.model_copy(update={"additional_kwargs": extra})
        if stored.chat or stored.begins:
            self.marks[kept.id or ""] = Mark(stored.chat, stored.begins)

    def _read_time(self, name: str, time: object) -> str:
        said = read_time(time)
        if not said and time not in (None, "", 0):
            self.report(UNREAD_TIMES, f"message {name}: {clip(repr(time), 60)}")
        return said

    def fill_times(self, zone: tzinfo | None = None) -> int:
        """Give messages without a time that of the one before, or else of the one after.

        Args:
            zone: Where the user lives: what was said has the days and hours of that zone, unless
                the export says another one. None for the zone of this machine.

        Returns:
            How many were given one.
        """
        times = [m.additional_kwargs.get("time", "") for m in self.messages]
        before = next(filter(None, times), "") or read_time(self.began_at)
        filled = 0
        for place, (message, time) in enumerate(zip(self.messages, times, strict=True)):
            before = time or before
            filled += bool(before) and not time
            placed = before if self.own_times else place_time(before, zone)
            if placed != time:
                extra = {**message.additional_kwargs, "time": placed}
                self.messages[place] = message.model_copy(update={"additional_kwargs": extra})
        return filled


def _explain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error.msg}"
    if isinstance(error, InputError | UnknownFormError):
        return str(error)
    return f"it has no {error}" if isinstance(error, KeyError) else "it is of another form"


class UnknownFormError(ValueError):
    """A part of an export that is of a form nobody here knows; the text says what is unexpected."""


_UNTITLED = frozenset(
    "new chat,new conversation,untitled,untitled chat,untitled conversation,no title"
    ",新对话,新聊天,新的对话,新的聊天,新建对话,新建聊天,新會話,新会话,无标题,無標題,未命名".split(
        ","
    )
)
"""What chats without a title are called."""
_MARKUP = " \"'“”‘’「」《》*#`"
"""Characters around a title that are no part of it."""


def clean_title(title: object) -> str:
    """The title of a conversation as a topic's name; "" if it says nothing."""
    said = "".join(c if c.isprintable() else " " for c in title) if isinstance(title, str) else ""
    plain = " ".join(said.split()).strip(_MARKUP)
    # In a full name that stands between a topic and its part.
    name = clip(plain.replace(PATH_SEPARATOR, "/"), NAME_LIMIT)
    return name if any(map(str.isalnum, name)) and name.casefold() not in _UNTITLED else ""
