"""LangChain: lists of messages in any of its forms: `messages_to_dict`, `dumpd`, `model_dump`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage, messages_from_dict

from topicloom_app.recordings.exported import INSTRUCTIONS, ExportedConversation
from topicloom_app.recordings.formats.base import Source, check_entry
from topicloom_app.recordings.json_stream import Entry

_TYPES = frozenset("human ai system tool function chat remove".split())
_TYPES_OF_CHUNKS = frozenset(
    f"{kind}MessageChunk" for kind in ("Human", "AI", "System", "Tool", "Function", "Chat")
)


class LangChain:
    """Messages of LangChain's and LangGraph's, such as the history of an agent."""

    name = "langchain"

    def recognizes(self, entry: Any) -> bool:
        """A message of LangChain's, a list of them, or a state with such a list."""
        listed = _find_messages(entry)
        return any(map(_is_message, listed[:50])) if listed is not None else _is_message(entry)

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """A conversation for each list; messages that stand alone are one together."""
        groups = list[list[Any]]()
        for alone, group in groupby(entries, lambda e: _find_messages(e.value) is None):
            values = [entry.value for entry in group]
            groups += [values] if alone else [_find_messages(value) or [] for value in values]
        for number, messages in enumerate(groups, 1):
            name = source.name if len(groups) == 1 else f"{source.name}-{number}"
            yield _read_all(messages, ExportedConversation(name, place="" if number == 1 else name))


def _find_messages(entry: object) -> list[Any] | None:
    """The messages of a list or of a state; None if it is a message by itself."""
    found = entry.get("messages") if isinstance(entry, Mapping) else entry
    return found if isinstance(found, list) else None


def _is_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    if value.get("lc") and isinstance(value.get("kwargs"), Mapping):
        return "Message" in str(value.get("id"))
    kind = value.get("type")
    known = isinstance(kind, str) and (kind in _TYPES or kind in _TYPES_OF_CHUNKS)
    return known and ("content" in value or "data" in value or kind == "remove")


def _read_all(messages: Iterable[Any], into: ExportedConversation) -> ExportedConversation:
    for number, entry in enumerate(messages, 1):
        with into.reading(f"message {number}"):
            message = _read_message(check_entry(entry))
            if isinstance(message, SystemMessage):
                into.skipped[INSTRUCTIONS] += 1
            else:
                into.add(message, message.additional_kwargs.get("time"))
    return into


def _read_message(entry: Any) -> BaseMessage:
    data = entry.get("data") or entry.get("kwargs") or entry
    (message,) = messages_from_dict([{"type": data.get("type", entry.get("type")), "data": data}])
    return message
