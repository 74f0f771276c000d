"""LibreChat: a conversation as JSON, its messages in a list or nested in each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from topicloom_app.recordings.exported import ExportedConversation
from topicloom_app.recordings.formats.base import (
    Source,
    begin_titled,
    join_parts,
    name_file,
    read_blocks,
    read_branches,
    read_each,
    tell_role,
)
from topicloom_app.recordings.json_stream import Entry

_NESTED = "messagesTree"


class LibreChat:
    """Conversations of LibreChat's."""

    name = "librechat"

    def recognizes(self, entry: Any) -> bool:
        """A conversation whose messages say by whom they were created."""
        if not isinstance(entry, dict):
            return False
        messages = entry.get("messages") or entry.get(_NESTED)
        first = messages[0] if isinstance(messages, list) and messages else messages
        return isinstance(first, dict) and (
            "isCreatedByUser" in first or "messageId" in first or "children" in first
        )

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The conversations of a file."""
        begin = partial(begin_titled, ids=("conversationId",), title="title", began="createdAt")
        return read_each(entries, source, begin, _read)


def _read(
    value: Mapping[str, Any], conversation: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    said = {str(m.get("messageId") or n): m for n, m in enumerate(_flatten(value))}
    # The first one names a message that is in no conversation.
    linked = any(m.get("parentMessageId") for m in said.values())
    before = dict(zip(said, [None, *said], strict=False))
    parents = {
        name: m.get("parentMessageId") if linked else before[name] for name, m in said.items()
    }
    return read_branches(said, parents, conversation, source, _tell, time="createdAt")


def _flatten(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The messages, each before those that follow it."""
    top = value.get("messages") or value.get(_NESTED) or ()
    waiting = list(top if isinstance(top, list) else [top])[::-1]
    while waiting:
        message = waiting.pop()
        inner = message.get("children") or ()
        if message.get("messageId") or message.get("text") or message.get("content"):
            yield message
        waiting += [
            {"parentMessageId": message.get("messageId"), **child} for child in reversed(inner)
        ]


def _tell(name: str, message: Mapping[str, Any], into: ExportedConversation) -> None:
    mine = message.get("isCreatedByUser")
    role = "user" if mine or (mine is None and message.get("sender") == "User") else "assistant"
    text = read_blocks(message.get("content"), into, f"message {name}") or message.get("text") or ""
    files = [f for f in message.get("files") or () if isinstance(f, dict)]
    lines = [
        name_file("image" if str(f.get("type")).startswith("image/") else "file", f.get("filename"))
        for f in files
    ]
    whole = join_parts(text, "\n".join(lines))
    tell_role(into, role, message.get("messageId"), message.get("createdAt"), whole)
