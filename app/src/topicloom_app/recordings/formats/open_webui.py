"""Open WebUI: the chats that it exports, all or one, as JSON.

A chat has a tree of messages (`history.messages`) with the one that is shown last (`currentId`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from topicloom_app.recordings.exported import (
    CALLS,
    REASONING,
    ExportedConversation,
    UnknownFormError,
    clean_title,
)
from topicloom_app.recordings.formats.base import (
    Source,
    join_parts,
    name_file,
    read_blocks,
    read_branches,
    read_each,
    read_role,
    tell_role,
)
from topicloom_app.recordings.json_stream import Entry

_DETAILS = re.compile(r'<details type="(reasoning|tool_calls|code_interpreter)"')
_DETAILS_END = "</details>"


class OpenWebUI:
    """Chats of Open WebUI's."""

    name = "openwebui"

    def recognizes(self, entry: Any) -> bool:
        """A chat with a history, in its envelope or alone."""
        chat = entry.get("chat", entry) if isinstance(entry, dict) else None
        if not isinstance(chat, dict):
            return False
        history = chat.get("history")
        return isinstance(history, dict) and isinstance(history.get("messages"), dict)

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The chats of a file."""
        return read_each(entries, source, _begin, _read)


def _begin(value: Mapping[str, Any], name: str) -> ExportedConversation:
    chat = value.get("chat") or value
    return ExportedConversation(
        str(value.get("id") or chat.get("id") or name),
        clean_title(value.get("title") or chat.get("title")),
        began_at=value.get("created_at") or chat.get("timestamp"),
    )


def _read(
    value: Mapping[str, Any], conversation: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    history = (value.get("chat") or value)["history"]
    said: Mapping[str, Any] = history["messages"]
    parents = {name: message.get("parentId") for name, message in said.items()}
    leaf = history.get("currentId")
    return read_branches(said, parents, conversation, source, _tell, time="timestamp", leaf=leaf)


def _tell(name: str, message: Mapping[str, Any], into: ExportedConversation) -> None:
    text = read_blocks(message.get("content"), into, f"message {name}")
    if message.get("error") and not text:
        raise UnknownFormError("it holds an error and no reply")
    files = [f for f in message.get("files") or () if isinstance(f, dict)]
    lines = [
        name_file("image" if f.get("type") == "image" else "file", f.get("name")) for f in files
    ]
    whole = join_parts(_remove_details(text, into), "\n".join(lines))
    tell_role(into, read_role(message.get("role")), name, message.get("timestamp"), whole)


def _remove_details(text: str, into: ExportedConversation) -> str:
    """A reply without the folded parts in which its reasoning and its calls of tools stand."""
    kept, at = list[str](), 0
    while found := _DETAILS.search(text, at):
        end = text.find(_DETAILS_END, found.end())
        if end < 0:
            break
        kept.append(text[at : found.start()])
        into.skipped[REASONING if found[1] == "reasoning" else CALLS] += 1
        at = end + len(_DETAILS_END)
    return "".join([*kept, text[at:]]).strip("\n") if kept else text
