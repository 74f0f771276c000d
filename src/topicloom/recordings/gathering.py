"""What is read of a conversation that another chat exported: its messages, and what is left out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from pydantic import ValidationError

from topicloom.errors import NotAConversationError
from topicloom.recordings.conversations import format_seconds
from topicloom.recordings.replay import parse_moment
from topicloom.state.messages import has_content

DAMAGED = "damaged, put it right and import it again: "
"""How a reason begins for which something that can be put right is left out."""
_UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
"""What is raised where a file is not as expected."""
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ExportedConversation:
    """A conversation of an export: what was said in it, on the branch that was shown last."""

    id: str
    messages: Sequence[BaseMessage] = ()
    """In order, each with an id and, where the export has it, `additional_kwargs["time"]`."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many of its messages are left out, by what they are or, if damaged, where they are."""

    @property
    def began(self) -> str:
        """The time of its first message; "" if the export has none."""
        times = (m.additional_kwargs.get("time", "") for m in self.messages)
        return next(filter(None, times), "")

    @property
    def damaged(self) -> list[str]:
        """What of it is damaged, and where."""
        return [reason for reason in self.skipped if reason.startswith(DAMAGED)]


class Gathered:
    """The messages of a conversation, and what was left out, as they are read."""

    def __init__(self, conversation: str, place: str = "") -> None:
        self._conversation, self._place, self._count = conversation, place, 0
        self._ids: set[str] = set()
        self.messages: list[BaseMessage] = []
        self.skipped: Counter[str] = Counter()

    @contextmanager
    def reading(self, part: str) -> Iterator[None]:
        """Read a part of it: if that is damaged it is left out, and the others go on."""
        try:
            yield
        except _UNREADABLE as error:
            self._count += 1  # so that the next ones have the names that they have when it is whole
            place = ", ".join(filter(None, [self._place, part, _explain_damage(error)]))
            self.skipped[DAMAGED + place] += 1

    def say(self, role: str, id_: object, time: object, text: str) -> None:
        """Add what the user or the assistant said."""
        kind = AIMessage if role == "assistant" else HumanMessage
        said = read_time(time)
        extra = {"time": said} if said else {}
        self.add(kind(text, id=str(id_) if id_ else None, additional_kwargs=extra))

    def add(self, message: BaseMessage) -> None:
        """Add a message, under an id that no other one of the conversation has."""
        if isinstance(message, RemoveMessage) or not has_content(message):
            self.skipped["without a text"] += 1
            return
        self._count += 1
        name = message.id or f"{self._conversation}-{self._count}"
        if name in self._ids:
            name = f"{name}-{self._count}"
        self._ids.add(name)
        self.messages.append(message.model_copy(update={"id": name}))

    def finish(self) -> ExportedConversation:
        """The conversation."""
        return ExportedConversation(self._conversation, self.messages, self.skipped)


def _explain_damage(error: Exception) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON: {error.msg}"
    if isinstance(error, NotAConversationError):
        return str(error)
    return f"it has no {error}" if isinstance(error, KeyError) else "it is of another form"


def read_time(value: object) -> str:
    """A time in ISO 8601; "" if it means none."""
    if isinstance(value, int | float):
        return format_seconds(value)
    found = parse_moment(value) if isinstance(value, str) else None
    return found.isoformat() if found else ""


def sort_by_time(conversations: Iterable[ExportedConversation]) -> list[ExportedConversation]:
    """Those that came first first, those without a time as they stand behind them."""
    return sorted(conversations, key=lambda c: (not c.began, parse_moment(c.began) or _NEVER))
