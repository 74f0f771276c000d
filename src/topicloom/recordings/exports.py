"""Conversations as other chats export them: ChatGPT, Claude, LangChain, and our own JSON lines.

Neither vendor publishes a format. What is read here is what their exports have had so far: a list
of conversations, ChatGPT's a tree of messages (`mapping`) with the one that is shown last
(`current_node`), Claude's a list (`chat_messages`). What cannot be read is left out and counted.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    messages_from_dict,
)

from topicloom.errors import NotAConversationError
from topicloom.recordings.conversations import (
    Conversation,
    format_seconds,
    load_conversations,
    read_recording,
)
from topicloom.recordings.replay import as_message, parse_moment
from topicloom.state.messages import has_content
from topicloom.state.stored_message import REMOVED
from topicloom.storage.message_rows import from_row

ExportFormat = Literal["chatgpt", "claude", "langchain", "jsonl"]
"""What wrote a file."""
Said = tuple[str, Any, str]
"""Id, time and text of a message."""


@dataclass(frozen=True, slots=True)
class ExportedConversation:
    """A conversation of an export: what was said in it, on the branch that was shown last."""

    id: str
    title: str = ""
    messages: Sequence[BaseMessage] = ()
    """In order, each with an id and, where the export has it, `additional_kwargs["time"]`."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many of its messages are left out, by what they are."""

    @property
    def began(self) -> str:
        """The time of its first message; "" if the export has none."""
        times = (m.additional_kwargs.get("time", "") for m in self.messages)
        return next(filter(None, times), "")


class _Gathered:
    """The messages of a conversation, and what was left out, as they are read."""

    def __init__(self, conversation: str) -> None:
        self._conversation = conversation
        self._ids: set[str] = set()
        self.messages: list[BaseMessage] = []
        self.skipped: Counter[str] = Counter()

    def say(self, role: str, id_: object, time: object, text: str) -> None:
        """Add what the user or the assistant said."""
        kind = AIMessage if role == "assistant" else HumanMessage
        said = _read_time(time)
        extra = {"time": said} if said else {}
        self.add(kind(text, id=str(id_) if id_ else None, additional_kwargs=extra))

    def add(self, message: BaseMessage) -> None:
        """Add a message, under an id that no other one of the conversation has."""
        if isinstance(message, HumanMessage) and not has_content(message):
            self.skipped["without a text"] += 1
            return
        name = message.id or f"{self._conversation}-{len(self.messages) + 1}"
        if name in self._ids:
            name = f"{name}-{len(self.messages) + 1}"
        self._ids.add(name)
        self.messages.append(message.model_copy(update={"id": name}))

    def finish(self, title: object = "") -> ExportedConversation:
        """The conversation."""
        shown = title if isinstance(title, str) else ""
        return ExportedConversation(self._conversation, shown, self.messages, self.skipped)


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
    elif kind == "langchain":
        yield from _read_langchain(path, _load(path))
    else:
        read, key = (_read_chatgpt, "mapping") if kind == "chatgpt" else (_read_claude, _CHATS)
        for number, value in enumerate(_load(path), 1):
            if not (isinstance(value, dict) and key in value):
                raise NotAConversationError(f"{path}: entry {number} has no {key!r}: not {kind}'s")
            yield _read_or_skip(read, value, number)


_CHATS = "chat_messages"
_UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
"""What is raised where a file is not as expected."""
_MEMBER = re.compile(r"(?:.*/)?conversations[\w-]*\.json")


def guess_format(path: Path) -> ExportFormat:
    """What wrote a file, by its first entry; raises `NotAConversationError` if it is no JSON."""
    first = next(iter(_load(path)), None)
    if isinstance(first, dict):
        if "mapping" in first or _CHATS in first:
            return "chatgpt" if "mapping" in first else "claude"
        if first.keys() & {"seq", "role"} or {"id", "messages"} <= first.keys():
            return "jsonl"
    return "langchain"


def _load(path: Path) -> list[Any]:
    """The entries of a JSON file, a file of JSON lines, or such files in an archive."""
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                names = sorted(name for name in archive.namelist() if _MEMBER.fullmatch(name))
                texts = [archive.read(name).decode("utf-8-sig") for name in names]
        except (OSError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise NotAConversationError(f"{path} cannot be read: {error}") from error
        if not texts:
            raise NotAConversationError(f"{path} holds no conversations.json")
    else:
        texts = [read_recording(path)]
    return [entry for text in texts for entry in _parse(path, text)]


def _parse(path: Path, text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        try:
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        except (ValueError, RecursionError):
            raise NotAConversationError(f"{path} is not JSON: {error}") from error
    return value if isinstance(value, list) else [value]


def _read_or_skip(
    read: Callable[[Any], ExportedConversation], value: Any, number: int
) -> ExportedConversation:
    """A conversation; one that is not as expected counts as left out, and the others go on."""
    try:
        return read(value)
    except _UNREADABLE as error:
        name = str(value.get("id") or value.get("uuid") or number)
        reason = f"conversations that cannot be read ({type(error).__name__}: {error})"
        return ExportedConversation(name, skipped=Counter({reason: 1}))


def _read_chatgpt(value: Mapping[str, Any]) -> ExportedConversation:
    gathered = _Gathered(str(value.get("conversation_id") or value.get("id")))
    nodes: Mapping[str, Any] = value["mapping"]
    parents = {name: node.get("parent") for name, node in nodes.items()}
    newest = max(nodes, key=lambda name: _written(nodes[name]), default=None)
    shown = _find_branch(value.get("current_node") or newest, parents)
    for name in nodes.keys() - set(shown):
        if _judge_chatgpt(nodes[name].get("message"))[1] == "":
            gathered.skipped["other branches, edited or answered again"] += 1
    for name in shown:
        message = nodes[name].get("message")
        text, reason = _judge_chatgpt(message)
        if reason:
            gathered.skipped[reason] += message is not None
            continue
        author = message["author"]["role"]
        gathered.say(author, message.get("id") or name, message.get("create_time"), text)
    return gathered.finish(value.get("title"))


def _written(node: Mapping[str, Any]) -> float:
    return (node.get("message") or {}).get("create_time") or 0.0


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


def _read_claude(value: Mapping[str, Any]) -> ExportedConversation:
    gathered = _Gathered(str(value["uuid"]))
    messages = {str(m.get("uuid") or n): m for n, m in enumerate(value[_CHATS])}
    parents = {name: m.get("parent_message_uuid") for name, m in messages.items()}
    leaf = value.get("current_leaf_message_uuid")
    shown = _find_branch(leaf, parents) if leaf in messages else list(messages)
    gathered.skipped["other branches, edited or answered again"] += len(messages) - len(shown)
    for name in shown:
        message = messages[name]
        role = "user" if message["sender"] == "human" else "assistant"
        text = _read_claude_text(message, gathered.skipped)
        if text.strip():
            gathered.say(role, message.get("uuid"), message.get("created_at"), text)
        else:
            gathered.skipped["without a text"] += 1
    return gathered.finish(value.get("name"))


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
        gathered = _Gathered(path.stem if len(lists) == 1 else f"{path.stem}-{number}")
        for entry in messages if isinstance(messages, list) else [messages]:
            _take_langchain(entry, gathered)
        yield gathered.finish()


def _take_langchain(entry: Any, gathered: _Gathered) -> None:
    try:
        data = entry.get("data") or entry.get("kwargs") or entry
        (message,) = messages_from_dict(
            [{"type": data.get("type", entry.get("type")), "data": data}]
        )
    except _UNREADABLE:
        gathered.skipped["what LangChain does not know"] += 1
        return
    if isinstance(message, SystemMessage | RemoveMessage):
        gathered.skipped[_INSTRUCTIONS] += 1
    else:
        time = _read_time(message.additional_kwargs.get("time"))
        extra = {**message.additional_kwargs, "time": time}
        gathered.add(message.model_copy(update={"additional_kwargs": extra}))


def _read_lines(path: Path) -> Iterator[ExportedConversation]:
    """Our own export, a message a line; or recorded conversations, as `replay` reads them."""
    text = read_recording(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if '"seq"' not in first or '"messages"' in first:
        yield from map(_take_recording, load_conversations(path))
        return
    gathered = _Gathered(path.stem)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                stored = from_row(json.loads(line))
                message = stored.message
            except _UNREADABLE as error:
                raise NotAConversationError(f"{path}, line {number}: {error}") from error
            if stored.text == REMOVED:
                gathered.skipped["removed on request"] += 1
                continue
            extra = {**message.additional_kwargs, "time": stored.time}
            gathered.add(message.model_copy(update={"additional_kwargs": extra}))
    yield gathered.finish()


def _take_recording(conversation: Conversation) -> ExportedConversation:
    gathered = _Gathered(conversation.id)
    for recorded in conversation.messages:
        if recorded.role in ("system", "tool"):
            tool = recorded.role == "tool"
            gathered.skipped["results of tools" if tool else _INSTRUCTIONS] += 1
        else:
            # Numbers of messages are those of one conversation.
            message = as_message(recorded)
            gathered.add(message.model_copy(update={"id": f"{conversation.id}-{recorded.id}"}))
    return gathered.finish()


def _read_time(value: object) -> str:
    """A time in ISO 8601; "" if it means none."""
    if isinstance(value, int | float):
        return format_seconds(value)
    found = parse_moment(value) if isinstance(value, str) else None
    return found.isoformat() if found else ""


def sort_by_time(conversations: Iterable[ExportedConversation]) -> list[ExportedConversation]:
    """Those that came first first, those without a time as they stand behind them."""
    return sorted(conversations, key=lambda c: (not c.began, parse_moment(c.began) or _NEVER))


_NEVER = datetime.max.replace(tzinfo=UTC)
