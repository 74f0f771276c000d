"""Conversations as other chats export them: ChatGPT, Claude, LangChain, and our own JSON lines.

Neither vendor publishes a format. What is read here is what their exports have had so far: a list
of conversations, ChatGPT's a tree of messages (`mapping`) with the one that is shown last
(`current_node`), Claude's a list (`chat_messages`). What is damaged is left out, by its place, and
all that is whole is taken.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from pydantic import ValidationError

from topicloom.errors import NotAConversationError
from topicloom.index.naming import NAME_LIMIT
from topicloom.recordings.conversations import (
    Conversation,
    check_whole,
    format_seconds,
    load_conversations,
    read_recording,
)
from topicloom.recordings.limits import check_text, check_unpacked
from topicloom.recordings.replay import as_message, parse_moment
from topicloom.state.hierarchy import PATH_SEPARATOR
from topicloom.state.messages import has_content
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import REMOVED
from topicloom.storage.message_rows import from_row

DAMAGED = "damaged, put it right and import it again: "
"""How a reason begins for which something that can be put right is left out."""
_UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
"""What is raised where a file is not as expected."""
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class ExportedConversation:
    """A conversation of an export: what was said in it, on the branch that was shown last."""

    id: str
    title: str | None = None
    """Its title, "" if it has none that says anything; None in formats whose conversations may have
    many subjects."""
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


_UNTITLED = frozenset(
    "new chat,new conversation,untitled,untitled chat,untitled conversation,no title"
    ",新对话,新聊天,新的对话,新的聊天,新建对话,新建聊天,新會話,新会话,无标题,無標題,未命名".split(
        ","
    )
)
"""What chats without a title are called."""
_MARKUP = " \"'“”‘’「」《》*#`"
"""Characters around a title that are no part of it."""


def clean_title(title: object) -> str:
    """The title of a conversation as a topic's name; "" if it says nothing."""
    said = "".join(c if c.isprintable() else " " for c in title) if isinstance(title, str) else ""
    plain = " ".join(said.split()).strip(_MARKUP)
    # In a full name that stands between a topic and its part.
    name = clip(plain.replace(PATH_SEPARATOR, "/"), NAME_LIMIT)
    return name if any(map(str.isalnum, name)) and name.casefold() not in _UNTITLED else ""


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
                found = [m for m in archive.infolist() if _MEMBER.fullmatch(m.filename)]
                check_unpacked(path, found)
                found.sort(key=lambda member: member.filename)
                texts = [archive.read(member).decode("utf-8-sig") for member in found]
        except NotAConversationError:
            raise
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
    check_text(path, text)
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
        id_ = str(next(filter(None, named), number))
        gathered = ExportedConversation(id_, clean_title(title), place)
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
        gathered = ExportedConversation(name, place=place)
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
    title = None if conversation.title is None else clean_title(conversation.title)
    gathered = ExportedConversation(conversation.id, title)
    for recorded in conversation.messages:
        if recorded.role in ("system", "tool"):
            tool = recorded.role == "tool"
            gathered.skipped["results of tools" if tool else _INSTRUCTIONS] += 1
        else:
            # Numbers of messages are those of one conversation.
            message = as_message(recorded)
            gathered.add(message.model_copy(update={"id": f"{conversation.id}-{recorded.id}"}))
    return gathered
