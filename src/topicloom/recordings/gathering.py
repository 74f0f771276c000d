"""What is whole of an export: its entries and what was said in each; of the rest, where it is."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from pydantic import ValidationError

from topicloom.errors import NotAConversationError
from topicloom.recordings.conversations import format_seconds, read_recording
from topicloom.recordings.replay import parse_moment
from topicloom.state.messages import has_content

DAMAGED = "damaged, put it right and import it again: "
"""How a reason begins for which something that can be put right is left out."""
_UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
"""What is raised where a file is not as expected."""
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class ExportedConversation:
    """A conversation of an export: what was said in it, on the branch that was shown last."""

    id: str
    place: str = ""
    """Where it stands in the export, for whoever has to put it right."""
    messages: list[BaseMessage] = field(default_factory=list)
    """In order, each with an id and, where the export has it, `additional_kwargs["time"]`."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many of its messages are left out, by what they are or, if damaged, where they are."""
    _count: int = field(default=0, init=False)
    _ids: set[str] = field(default_factory=set, init=False)

    @property
    def began(self) -> str:
        """The time of its first message; "" if the export has none."""
        times = (m.additional_kwargs.get("time", "") for m in self.messages)
        return next(filter(None, times), "")

    @property
    def damaged(self) -> list[str]:
        """What of it is damaged, and where."""
        return [reason for reason in self.skipped if reason.startswith(DAMAGED)]

    @contextmanager
    def reading(self, part: str) -> Iterator[None]:
        """Read a part of it: if that is damaged it is left out, and the others go on."""
        try:
            yield
        except _UNREADABLE as error:
            self._count += 1  # so that the next ones have the names that they have when it is whole
            place = ", ".join(filter(None, [self.place, part, _explain_damage(error)]))
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
        name = message.id or f"{self.id}-{self._count}"
        if name in self._ids:
            name = f"{name}-{self._count}"
        self._ids.add(name)
        self.messages.append(message.model_copy(update={"id": name}))


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


_MEMBER = re.compile(r"(?:.*/)?conversations[\w-]*\.json")


def load_entries(path: Path) -> list[Any]:
    """The entries of a JSON file, a file of JSON lines, or such files in an archive.

    Where one is damaged stands a `NotAConversationError` that says where that is.

    Raises:
        NotAConversationError: It cannot be read, or nothing of it is JSON.
    """
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                names = sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name))
                texts = [archive.read(name).decode("utf-8-sig") for name in names]
        except (OSError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise NotAConversationError(
                f"{path} cannot be read: {error}. Export it again"
            ) from error
        if not texts:
            raise NotAConversationError(f"{path} holds no conversations.json")
    else:
        texts = [read_recording(path)]
    return [entry for text in texts for entry in _parse(path, text)]


def _parse(path: Path, text: str) -> list[Any]:
    """The entries of a text; where one is damaged stands an error that says so."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        found = max(_parse_lines(text), _parse_list(text), key=_count_whole)
        if not _count_whole(found):
            raise NotAConversationError(f"{path} is not JSON: {error}") from error
        return found
    return value if isinstance(value, list) else [value]


def _parse_lines(text: str) -> list[Any]:
    """What stands on each line; that may be a list with an entry on each."""
    found = list[Any]()
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip().rstrip(",")
        if entry not in ("", "[", "]"):
            try:
                found.append(json.loads(entry))
            except (ValueError, RecursionError) as error:
                found.append(NotAConversationError(f"line {number} is no JSON: {error}"))
    return found


def _parse_list(text: str) -> list[Any]:
    """The entries of a list that is damaged, up to there."""
    found, at = list[Any](), text.find("[") + 1
    if text[:at].strip() != "[":
        return []
    try:
        while True:
            at += len(text) - at - len(text[at:].lstrip(" \t\r\n,"))
            if text[at : at + 1] == "]":
                return []  # it ends: what stands behind it is no part of it
            value, at = json.JSONDecoder().raw_decode(text, at)
            found.append(value)
    except (ValueError, RecursionError):
        line = text.count("\n", 0, at) + 1
        where = f"line {line}, character {at - text.rfind(chr(10), 0, at)}"
        return [*found, NotAConversationError(f"{where}, is no JSON, and what follows is not read")]


def _count_whole(entries: Sequence[Any]) -> int:
    return sum(isinstance(entry, list | dict) for entry in entries)
