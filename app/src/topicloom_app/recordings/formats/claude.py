"""Claude: `conversations.json` of the archive that it sends, or a single conversation.

A conversation is a list (`chat_messages`) whose messages may name the one that they follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from topicloom.hosting import FilledText
from topicloom_app.recordings.exported import (
    CALLS,
    EMPTY,
    INSTRUCTIONS,
    REASONING,
    RESULTS,
    ExportedConversation,
    UnknownFormError,
)
from topicloom_app.recordings.formats.base import (
    Source,
    begin_titled,
    find_kind,
    join_parts,
    name_file,
    read_branches,
    read_each,
)
from topicloom_app.recordings.json_stream import Entry

_CHATS = "chat_messages"
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_LEFT_OUT = {
    "thinking": REASONING,
    "redacted_thinking": REASONING,
    "tool_use": CALLS,
    "server_tool_use": CALLS,
    "tool_result": RESULTS,
    "web_search_tool_result": RESULTS,
    "token_budget": INSTRUCTIONS,
    "flag": INSTRUCTIONS,
}
_WRITES = {"artifacts", "create_file", "str_replace", "str_replace_based_edit_tool", "edit_file"}
"""Tools by which Claude writes what the user asked for."""
_WRITTEN = ("content", "file_text", "new_str", "new_text")
"""Where these tools have the text."""


class Claude:
    """Conversations of Claude's."""

    name = "claude"

    def recognizes(self, entry: Any) -> bool:
        """A list of messages under `chat_messages`."""
        return isinstance(entry, dict) and isinstance(entry.get(_CHATS), list)

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The conversations of a file."""
        begin = partial(begin_titled, ids=("uuid", "id"), title="name", began="created_at")
        return read_each(entries, source, begin, _read)


def _read(
    value: Mapping[str, Any], conversation: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    said: dict[str, Mapping[str, Any]] = {}
    for number, message in enumerate(value[_CHATS]):
        with conversation.reading(f"message {number + 1}"):
            said[str(message.get("uuid") or number)] = message
    # Older exports do not say what follows what: there it is the one before.
    linked = any("parent_message_uuid" in message for message in said.values())
    before = dict(zip(said, [None, *said], strict=False))
    parents = {
        name: message.get("parent_message_uuid") if linked else before[name]
        for name, message in said.items()
    }
    leaf = value.get("current_leaf_message_uuid")
    return read_branches(said, parents, conversation, source, _tell, time="created_at", leaf=leaf)


def _tell(name: str, message: Mapping[str, Any], into: ExportedConversation) -> None:
    sender = message["sender"]
    if sender not in _ROLES:
        raise UnknownFormError(FilledText("its sender is {sender!r:.60}", sender=sender))
    text = join_parts(_read_text(message, into), *_list_attached(message))
    if text:
        into.say(_ROLES[sender], message.get("uuid"), message.get("created_at"), text)
    else:
        into.skipped[EMPTY] += 1


def _read_text(message: Mapping[str, Any], into: ExportedConversation) -> str:
    """What was said, spoken and written into documents; the older exports have no blocks."""
    blocks = message.get("content") or []
    if isinstance(blocks, str):
        return blocks
    texts, unknown, gap = list[str](), False, "\n"
    for block in blocks:
        kind = find_kind(block)
        if kind in ("text", "voice_note"):
            texts.append(block.get("text") or "")
        elif kind == "tool_use" and (written := _read_document(block)):
            texts.append(written)
            gap = "\n\n"  # what is a document stands apart
        elif kind in _LEFT_OUT:
            into.skipped[_LEFT_OUT[kind]] += 1
        else:
            unknown = True
            into.report(
                FilledText("blocks of type {type}", type=f"{kind!s:.40}"),
                f"message {message.get('uuid')}",
            )
    said = gap.join(filter(None, texts))
    return said or ("" if blocks and not unknown else message.get("text") or "")


def _read_document(call: Mapping[str, Any]) -> str:
    """What Claude wrote into an artifact or a file, below its name; "" for calls of other tools."""
    given = call.get("input")
    if call.get("name") not in _WRITES or not isinstance(given, dict):
        return ""
    written = next((given[k] for k in _WRITTEN if isinstance(given.get(k), str)), "")
    name = given.get("title") or given.get("path") or given.get("id") or "document"
    return f"{name}:\n{written}" if written.strip() else ""


def _list_attached(message: Mapping[str, Any]) -> list[str]:
    """What was attached: as text where the export has it, by its name where it does not."""
    lines = list[str]()
    for attached in message.get("attachments") or ():
        name, text = attached.get("file_name"), attached.get("extracted_content")
        lines.append(f"{name or 'file'}:\n{text}" if text else name_file("file", name))
    for file in message.get("files") or message.get("files_v2") or ():
        kind = "image" if file.get("file_kind") == "image" else "file"
        lines.append(name_file(kind, file.get("file_name")))
    return lines
