"""OpenAI's messages: lists of `role` and `content`, and the lines of files for fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from topicloom_app.recordings.exported import (
    CALLS,
    ExportedConversation,
    clean_title,
)
from topicloom_app.recordings.formats.base import (
    Source,
    check_entry,
    find_time,
    read_blocks,
    read_role,
    tell_role,
)
from topicloom_app.recordings.json_stream import Entry

_ROLES = ("role", "sender", "author")
_TEXTS = ("content", "text", "parts", "message", "value")


class OpenAIMessages:
    """Messages with a role and a content, as most programs write them."""

    name = "openai"

    def recognizes(self, entry: Any) -> bool:
        """A message, a list of messages, or an object with such a list."""
        listed = _find_messages(entry)
        if listed is not None:
            return any(_is_message(message) for message in listed[:50])
        return _is_message(entry)

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """A conversation for each list; messages that stand alone are one together."""
        number = 0
        for alone, group in groupby(entries, lambda e: _find_messages(e.value) is None):
            if alone:
                number += 1
                yield _read_all([e.value for e in group], {}, source, number)
                continue
            for entry in group:
                number += 1
                value = entry.value if isinstance(entry.value, Mapping) else {}
                yield _read_all(_find_messages(entry.value) or [], value, source, number)


def _find_messages(entry: object) -> list[Any] | None:
    """The messages of a conversation; None if it is a message by itself, or nothing known."""
    if isinstance(entry, list):
        return entry
    found = entry.get("messages") if isinstance(entry, Mapping) else None
    return found if isinstance(found, list) else None


def _is_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    spoken = any(key in value for key in (*_TEXTS, "tool_calls", "function_call", "refusal"))
    return spoken and any(isinstance(value.get(key), str) for key in _ROLES)


def _read_all(
    messages: Iterable[Any], value: Mapping[str, Any], source: Source, number: int
) -> ExportedConversation:
    title = value.get("title") or value.get("name")
    id_ = value.get("id") or (source.name if number == 1 else f"{source.name}-{number}")
    conversation = ExportedConversation(
        str(id_),
        clean_title(title) if isinstance(title, str) and title else None,
        place=f"conversation {number}",
        began_at=find_time(value),
    )
    for at, message in enumerate(messages, 1):
        with conversation.reading(f"message {at}"):
            _tell(check_entry(message), conversation, at)
    return conversation


def _tell(message: Mapping[str, Any], into: ExportedConversation, at: int) -> None:
    role = read_role(next(message[key] for key in _ROLES if message.get(key) is not None))
    content = next((message[key] for key in _TEXTS if message.get(key) is not None), None)
    if not content and message.get("refusal"):
        content = message["refusal"]
    text = read_blocks(content, into, f"message {at}")
    calls = message.get("tool_calls") or message.get("function_call")
    if calls:
        into.skipped[CALLS] += len(calls) if isinstance(calls, list) else 1
        if not text.strip():
            return
    id_ = message.get("id")
    # Numbers are those of one conversation.
    named = f"{into.id}-{id_}" if isinstance(id_, int) else id_
    tell_role(into, role, named, find_time(message), text)
