"""DeepSeek: `conversations.json` of the archive that it sends.

A conversation is a tree (`mapping`) like ChatGPT's; a message consists of fragments, or, in older
exports, of `content` and `reasoning_content`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from topicloom.hosting import FilledText
from topicloom_app.recordings.exported import (
    CALLS,
    EMPTY,
    REASONING,
    RESULTS,
    ExportedConversation,
    UnknownFormError,
)
from topicloom_app.recordings.formats.base import (
    Source,
    begin_titled,
    join_parts,
    name_file,
    read_each,
)
from topicloom_app.recordings.formats.citations import resolve_numbers
from topicloom_app.recordings.formats.tree import list_messages, read_tree
from topicloom_app.recordings.json_stream import Entry

_ROLES = {"REQUEST": "user", "RESPONSE": "assistant", "TEMPLATE_RESPONSE": "assistant"}
_LEFT_OUT = {"THINK": REASONING, "TIP": REASONING}


class DeepSeek:
    """Conversations of DeepSeek's."""

    name = "deepseek"

    def recognizes(self, entry: Any) -> bool:
        """A tree of messages that consist of fragments."""
        said = list_messages(entry)
        if said is None:
            return False
        known = any(isinstance(m, dict) and ("fragments" in m or "author" not in m) for m in said)
        return "inserted_at" in entry if not said else known

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The conversations of a file."""
        begin = partial(begin_titled, ids=("id",), title="title", began="inserted_at")
        return read_each(entries, source, begin, _read)


def _read(
    value: Mapping[str, Any], conversation: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    def tell(name: str, message: Mapping[str, Any], into: ExportedConversation) -> None:
        if message:
            # Nodes are numbered alike in all conversations.
            _tell(f"{conversation.id}-{name}", message, into)

    return read_tree(value, conversation, source, tell, time="inserted_at")


def _tell(name: str, message: Mapping[str, Any], into: ExportedConversation) -> None:
    role, text = _read_message(message, into)
    files = [f for f in message.get("files") or () if isinstance(f, dict)]
    lines = [name_file("file", f.get("file_name") or f.get("name")) for f in files]
    whole = join_parts(text, "\n".join(lines))
    if whole:
        into.say(role, name, message.get("inserted_at"), whole)
    else:
        into.skipped[EMPTY] += 1


def _read_message(message: Mapping[str, Any], into: ExportedConversation) -> tuple[str, str]:
    fragments = message.get("fragments")
    if fragments is None:
        into.skipped[REASONING] += bool(message.get("reasoning_content"))
        role = message.get("role") or ("assistant" if message.get("model_reply") else "user")
        return str(role).lower(), str(message["content"])
    role, texts, sources = "", list[str](), list[Any]()
    for fragment in fragments:
        kind = str(fragment.get("type")).upper()
        if kind in _ROLES:
            role = role or _ROLES[kind]
            texts.append(fragment.get("content") or "")
        elif kind in _LEFT_OUT:
            into.skipped[_LEFT_OUT[kind]] += 1
        elif isinstance(results := fragment.get("results"), list):
            sources += results
            into.skipped[RESULTS] += 1
        elif kind.startswith(("TOOL", "SEARCH", "READ")):
            into.skipped[CALLS] += 1
        else:
            raise UnknownFormError(FilledText("a fragment is of type {kind!r:.60}", kind=kind))
    return role or "assistant", resolve_numbers("\n".join(filter(None, texts)), sources)
