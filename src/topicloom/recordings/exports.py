"""Conversations as other chats export them: ChatGPT, Claude, LangChain, and our own JSON lines.

Neither vendor publishes a format. What is read here is what their exports have had so far: a list
of conversations, ChatGPT's a tree of messages (`mapping`) with the one that is shown last
(`current_node`), Claude's a list (`chat_messages`). What is damaged is left out, by its place, and
all that is whole is taken.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import BaseMessage, SystemMessage, messages_from_dict

from topicloom.errors import NotAConversationError
from topicloom.recordings.conversations import (
    Conversation,
    check_whole,
    load_conversations,
    read_recording,
)
from topicloom.recordings.gathering import (
    DAMAGED,
    ExportedConversation,
    load_entries,
    read_time,
)
from topicloom.recordings.replay import as_message
from topicloom.state.stored_message import REMOVED
from topicloom.storage.message_rows import from_row

ExportFormat = Literal["chatgpt", "claude", "langchain", "jsonl"]
"""What wrote a file."""
_CHATS = "chat_messages"
"""What tells a conversation of Claude's."""


def read_export(path: Path, kind: ExportFormat) -> Iterator[ExportedConversation]:
    """The conversations of an export, in its order.

    Args:
        path: The file, or the archive that a vendor sends.
        kind: What wrote it.

    Raises:
        NotAConversationError: It cannot be read, or is something else.
    """
    if kind == "jsonl":
        yield from _read_lines(path)
        return
    entries = load_entries(path)
    if kind == "langchain":
        yield from _read_langchain(path, entries)
        return
    read, key = (_read_chatgpt, "mapping") if kind == "chatgpt" else (_read_claude, _CHATS)
    if entries and not any(isinstance(entry, dict) and key in entry for entry in entries):
        raise NotAConversationError(f"{path}: entry 1 has no {key!r}: not {kind}'s")
    for number, value in enumerate(entries, 1):
        known = value if isinstance(value, dict) else {}
        named = (known.get(k) for k in ("conversation_id", "id", "uuid"))
        title = known.get("title") or known.get("name")
        place = f"conversation {number}" + (f" “{title}”" if title else "")
        gathered = ExportedConversation(str(next(filter(None, named), number)), place)
        with gathered.reading(""):
            read(check_whole(value), gathered)
        yield gathered


def guess_format(path: Path) -> ExportFormat:
    """What wrote a file, by its first entry; raises `NotAConversationError` if it is no JSON."""
    first = next(iter(load_entries(path)), None)
    if isinstance(first, dict):
        if "mapping" in first or _CHATS in first:
            return "chatgpt" if "mapping" in first else "claude"
        if first.keys() & {"seq", "role"} or {"id", "messages"} <= first.keys():
            return "jsonl"
    return "langchain"


def _read_chatgpt(value: Mapping[str, Any], gathered: ExportedConversation) -> None:
    nodes: Mapping[str, Any] = value["mapping"]
    parents = {name: node.get("parent") for name, node in nodes.items()}
    leaf = value.get("current_node")
    if leaf not in nodes:
        leaf = max(nodes, key=lambda name: _written(nodes[name]), default=None)
    shown = _find_branch(leaf, parents)
    for name in nodes.keys() - set(shown):
        with gathered.reading(f"message {name}"):
            if _judge_chatgpt(nodes[name].get("message"))[1] == "":
                gathered.skipped["other branches, edited or answered again"] += 1
    for name in shown:
        message = nodes[name].get("message")
        with gathered.reading(f"message {name}"):
            text, reason = _judge_chatgpt(message)
            if reason:
                gathered.skipped[reason] += message is not None
                continue
            author = message["author"]["role"]
            gathered.say(author, message.get("id") or name, message.get("create_time"), text)


def _written(node: Mapping[str, Any]) -> float:
    time = (node.get("message") or {}).get("create_time")
    return time if isinstance(time, int | float) else 0.0


def _find_branch(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """The messages from the first to a leaf; dicts keep their order, and a circle ends."""
    branch: dict[str, None] = {}
    while leaf is not None and leaf in parents and leaf not in branch:
        branch[leaf] = None
        leaf = parents[leaf]
    return list(branch)[::-1]


_INSTRUCTIONS, _REASONING = "instructions and settings", "reasoning"
_KINDS = {
    "user_editable_context": _INSTRUCTIONS,
    "model_editable_context": _INSTRUCTIONS,
    "thoughts": _REASONING,
    "reasoning_recap": _REASONING,
}


def _judge_chatgpt(message: Mapping[str, Any] | None) -> tuple[str, str]:
    """The text of a message, and why it is left out; "" if it is not."""
    if not message:
        return "", "empty"
    role, content = message["author"]["role"], message.get("content") or {}
    parts = content.get("parts") or [content.get("text") or content.get("result") or ""]
    texts = [p if isinstance(p, str) else (p or {}).get("text") or "" for p in parts]
    text = "\n".join(filter(None, texts))
    if role not in ("user", "assistant"):
        return text, "results of tools" if role == "tool" else _INSTRUCTIONS
    if reason := _KINDS.get(content.get("content_type", "")):
        return text, reason
    if (message.get("metadata") or {}).get("is_visually_hidden_from_conversation"):
        return text, "hidden"
    if message.get("recipient") not in (None, "all"):
        return text, "calls of tools"
    return text, "" if text.strip() else "without a text"


def _read_claude(value: Mapping[str, Any], gathered: ExportedConversation) -> None:
    messages = {str(m.get("uuid") or n): m for n, m in enumerate(value[_CHATS])}
    parents = {name: m.get("parent_message_uuid") for name, m in messages.items()}
    leaf = value.get("current_leaf_message_uuid")
    shown = _find_branch(leaf, parents) if leaf in messages else list(messages)
    gathered.skipped["other branches, edited or answered again"] += len(messages) - len(shown)
    for name in shown:
        message = messages[name]
        with gathered.reading(f"message {name}"):
            role = "user" if message["sender"] == "human" else "assistant"
            text = _read_claude_text(message, gathered.skipped)
            if text.strip():
                gathered.say(role, message.get("uuid"), message.get("created_at"), text)
            else:
                gathered.skipped["without a text"] += 1


def _read_claude_text(message: Mapping[str, Any], skipped: Counter[str]) -> str:
    """What was said, and what was attached as text; the older exports have no blocks."""
    blocks = message.get("content") or []
    texts = [block.get("text") or "" for block in blocks if block.get("type") == "text"]
    named = {"tool_use": "calls of tools", "tool_result": "results of tools"}
    others = [block.get("type") for block in blocks if block.get("type") != "text"]
    skipped.update(named.get(kind, _REASONING if kind == "thinking" else kind) for kind in others)
    said = "\n".join(filter(None, texts)) or ("" if blocks else message.get("text") or "")
    attached = [a for a in message.get("attachments") or [] if a.get("extracted_content")]
    skipped["files"] += len(message.get("files") or [])
    files = [f"{a.get('file_name') or 'file'}:\n{a['extracted_content']}" for a in attached]
    return "\n\n".join(filter(None, [said, *files]))


def _read_langchain(path: Path, entries: Sequence[Any]) -> Iterator[ExportedConversation]:
    """Lists of messages, or a single one, each message in any of LangChain's forms."""
    lists = [e["messages"] if isinstance(e, dict) and "messages" in e else e for e in entries]
    if not any(isinstance(entry, list) for entry in lists):
        lists = [lists]
    for number, messages in enumerate(lists, 1):
        name, place = (path.stem, "") if len(lists) == 1 else (f"{path.stem}-{number}",) * 2
        gathered = ExportedConversation(name, place)
        for n, entry in enumerate(messages if isinstance(messages, list) else [messages], 1):
            with gathered.reading(f"message {n}"):
                message = _read_langchain_message(check_whole(entry))
                if isinstance(message, SystemMessage):
                    gathered.skipped[_INSTRUCTIONS] += 1
                else:
                    time = read_time(message.additional_kwargs.get("time"))
                    extra = {**message.additional_kwargs, "time": time}
                    gathered.add(message.model_copy(update={"additional_kwargs": extra}))
        yield gathered


def _read_langchain_message(entry: Any) -> BaseMessage:
    data = entry.get("data") or entry.get("kwargs") or entry
    (message,) = messages_from_dict([{"type": data.get("type", entry.get("type")), "data": data}])
    return message


def _read_lines(path: Path) -> Iterator[ExportedConversation]:
    """Our own export, a message a line; or recorded conversations, as `replay` reads them."""
    text, gathered = read_recording(path), ExportedConversation(path.stem)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if '"seq"' not in first or '"messages"' in first:
        damaged = list[NotAConversationError]()
        yield from map(_take_recording, load_conversations(path, damaged))
        for error in damaged:
            with gathered.reading(""):
                raise error
        yield from [gathered] if damaged else ()
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            with gathered.reading(f"line {number}"):
                stored = from_row(json.loads(line))
                message = stored.message
                if stored.text == REMOVED:
                    gathered.skipped["removed on request"] += 1
                    continue
                extra = {**message.additional_kwargs, "time": stored.time}
                gathered.add(message.model_copy(update={"additional_kwargs": extra}))
    if gathered.damaged and not gathered.messages:
        raise NotAConversationError(f"{path}: {gathered.damaged[0].removeprefix(DAMAGED)}")
    yield gathered


def _take_recording(conversation: Conversation) -> ExportedConversation:
    gathered = ExportedConversation(conversation.id)
    for recorded in conversation.messages:
        if recorded.role in ("system", "tool"):
            tool = recorded.role == "tool"
            gathered.skipped["results of tools" if tool else _INSTRUCTIONS] += 1
        else:
            # Numbers of messages are those of one conversation.
            message = as_message(recorded)
            gathered.add(message.model_copy(update={"id": f"{conversation.id}-{recorded.id}"}))
    return gathered
