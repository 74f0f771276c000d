"""What a format of exports is, and what the readers of several formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Protocol

from topicloom import NotAConversationError
from topicloom.hosting import FilledText, clip
from topicloom_app.recordings.branches import Branches, find_branches
from topicloom_app.recordings.exported import (
    BRANCHES,
    CALLS,
    EMPTY,
    INSTRUCTIONS,
    REASONING,
    RESULTS,
    UNREAD_CONVERSATIONS,
    ExportedConversation,
    UnknownFormError,
    clean_title,
)
from topicloom_app.recordings.json_stream import Entry
from topicloom_app.recordings.times import parse_moment, read_time


@dataclass(frozen=True, slots=True)
class Source:
    """What a reader is told beside the entries of a file."""

    name: str
    """The name of the file, without folder and ending: conversations without an id take theirs
    from it."""
    branches: bool = False
    """True to read other branches than the one that was shown too, as conversations of their own.
    """
    zone: tzinfo | None = None
    """Where the user lives; None for the zone of this machine."""
    day_first: bool | None = None
    """Whether the day comes before the month between slashes; None if it is not said."""


class ExportFormat(Protocol):
    """A format that other chats export. A new one is a file with this, and its sample."""

    name: str
    """What a user calls it: `chatgpt`."""

    def recognizes(self, entry: Any) -> bool:
        """True if an entry of a file is of this format, by its content alone."""
        ...

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The conversations of a file, in its order.

        Raises nothing for an entry that is of another form: it is reported in a conversation.
        """
        ...


Tell = Callable[[str, Mapping[str, Any], ExportedConversation], None]
"""Reads the message of an id into a conversation."""
ReadConversation = Callable[
    [Mapping[str, Any], ExportedConversation, Source], Iterable[ExportedConversation]
]
"""Reads an entry into the conversation that was begun for it, and returns that and its branches."""


def read_each(
    entries: Iterable[Entry],
    source: Source,
    begin: Callable[[Mapping[str, Any], str], ExportedConversation],
    read: ReadConversation,
) -> Iterator[ExportedConversation]:
    """Read entries that are a conversation each. One of another form is reported.

    Args:
        entries: The entries.
        source: Where they are from.
        begin: Makes the conversation of an entry, without messages, by the entry and a name for it.
        read: Reads it.
    """
    for number, entry in enumerate(entries, 1):
        name = f"{source.name}-{number}"
        value = entry.value if isinstance(entry.value, Mapping) else {}
        conversation = ExportedConversation(name, place=f"conversation {number}")
        with conversation.reading("", UNREAD_CONVERSATIONS):
            conversation = begin(value, name)
        title = conversation.title or conversation.name
        conversation.place = f"conversation {number}" + (f" “{title}”" if title else "")
        found: Sequence[ExportedConversation] = ()
        with conversation.reading("", UNREAD_CONVERSATIONS):
            found = list(read(check_entry(entry.value), conversation, source))
        yield from found or (conversation,)


def check_entry(value: Any) -> Any:
    """An entry, or the error that stands where it could not be read."""
    if isinstance(value, NotAConversationError):
        raise value
    return value


def begin_titled(
    value: Mapping[str, Any], fallback: str, *, ids: Sequence[str], title: str, began: str
) -> ExportedConversation:
    """A conversation about one matter, by the keys that its id, title and time stand under."""
    id_ = next((value[key] for key in ids if value.get(key)), fallback)
    return ExportedConversation(str(id_), clean_title(value.get(title)), began_at=value.get(began))


def read_branches(
    said: Mapping[str, Mapping[str, Any]],
    parents: Mapping[str, object],
    conversation: ExportedConversation,
    source: Source,
    tell: Tell,
    *,
    time: str,
    leaf: object = None,
) -> Iterator[ExportedConversation]:
    """A conversation with what its shown branch says, and the others if they are asked for.

    Other branches hold what they alone say. If they are not asked for, they are counted.

    Args:
        said: The messages by id.
        parents: The message that each follows, by id.
        conversation: Takes what is shown.
        source: Says whether other branches are asked for.
        tell: Reads the message of an id into a conversation.
        time: The key that the time of a message stands under, in any form.
        leaf: Id of the newest message that is shown; that of the newest branch if not given.
    """
    times = {id_: message.get(time) for id_, message in said.items()}
    branches = find_timed_branches(parents, leaf, times)
    for id_ in branches.shown:
        with conversation.reading(f"message {id_}"):
            tell(id_, said[id_], conversation)
    yield conversation
    for number, branch in enumerate(branches.others, 2):
        title = f"{conversation.title} (branch {number})" if conversation.title else None
        other = ExportedConversation(
            f"{conversation.id}-branch-{number}",
            conversation.title if title is None else clean_title(title),
            place=f"{conversation.place}, branch {number}",
            began_at=conversation.began_at,
        )
        for id_ in branch:
            with other.reading(f"message {id_}"):
                tell(id_, said[id_], other)
        if source.branches:
            yield other
        else:
            conversation.unread.update(other.unread)
            conversation.skipped[BRANCHES] += len(other.messages)


def find_timed_branches(
    parents: Mapping[str, object], leaf: object, times: Mapping[str, object]
) -> Branches:
    """The branches of a conversation whose messages have times in any form.

    A parent that is no id is taken for the id of a message that the export has lost.
    """
    read = {id_: parse_moment(read_time(time)) for id_, time in times.items()}
    named = {
        id_: parent if parent is None or isinstance(parent, str) else repr(parent)
        for id_, parent in parents.items()
    }
    return find_branches(
        named, leaf, {id_: moment.timestamp() for id_, moment in read.items() if moment}
    )


_ROLES = {
    **dict.fromkeys(("user", "human", "customer", "prompter"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "gpt", "chatgpt", "model", "bing", "bard"), "assistant"
    ),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "function_response", "ipython"), "tool"),
    "function_call": "call",
}


def read_role(value: object) -> str:
    """`user`, `assistant`, `system`, `tool` or `call`, by what formats call these.

    Raises:
        UnknownFormError: It is none of them.
    """
    role = _ROLES.get(value.lower()) if isinstance(value, str) else None
    if role is None:
        raise UnknownFormError(FilledText("its role is {role}", role=clip(repr(value), 60)))
    return role


def tell_role(into: ExportedConversation, role: str, id_: object, time: object, text: str) -> None:
    """Add what the user or the assistant said; of other roles, that it is left out."""
    left_out = {"system": INSTRUCTIONS, "tool": RESULTS, "call": CALLS}.get(role)
    if left_out:
        into.skipped[left_out] += 1
    elif text.strip():
        into.say(role, id_, time, text)
    else:
        into.skipped[EMPTY] += 1


_MEDIA_BLOCKS = {
    **dict.fromkeys(("image_url", "image", "input_image"), "image"),
    **dict.fromkeys(("input_audio", "audio"), "audio"),
    **dict.fromkeys(("file", "input_file", "document"), "file"),
    "video": "video",
}


def read_blocks(content: object, into: ExportedConversation, place: str) -> str:
    """The text of a message: as it is, or of its content blocks, with lines for what is no text.

    Blocks of another kind are reported.
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    texts, files = list[str](), list[str]()
    for block in content if isinstance(content, list) else [content]:
        kind = find_kind(block)
        if isinstance(block, str):
            texts.append(block)
        elif kind in _MEDIA_BLOCKS:
            files.append(name_file(_MEDIA_BLOCKS[kind], _find_file_name(block)))
        elif reason := _LEFT_OUT_BLOCKS.get(kind or ""):
            into.skipped[reason] += 1
        elif isinstance(text := _find_text(block), str):
            texts.append(text)
        else:
            into.report(FilledText("blocks of type {type}", type=f"{kind!s:.40}"), place)
    return join_parts("\n".join(filter(None, texts)), "\n".join(files))


def find_kind(block: object) -> str | None:
    """The type of a content block; of one that names none, what it looks like by its keys."""
    if not isinstance(block, Mapping):
        return None
    kind = block.get("type")
    if kind is None:
        known = (*_MEDIA_BLOCKS, *_LEFT_OUT_BLOCKS, "text")
        return next((key for key in known if key in block), None)
    return str(kind)


_LEFT_OUT_BLOCKS = {
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "think"), REASONING),
    **dict.fromkeys(("tool_use", "tool_call", "function_call"), CALLS),
    **dict.fromkeys(("tool_result", "function_call_output"), RESULTS),
}


def _find_text(block: object) -> object:
    if not isinstance(block, dict):
        return None
    text = block.get("refusal") if block.get("type") == "refusal" else block.get("text")
    return text.get("value") if isinstance(text, dict) else text


def _find_file_name(block: Any) -> object:
    inner = block.get("file")
    return (inner if isinstance(inner, dict) else block).get("filename")


_TIMES = ("time", "timestamp", "created_at", "createdAt", "create_time", "created", "date", "ts")


def find_time(message: Mapping[str, Any]) -> object:
    """The time of a message, under any of the keys that programs put it under."""
    return next((message[key] for key in _TIMES if message.get(key) is not None), None)


def name_file(kind: str, name: object = None) -> str:
    """The line that stands for a file that an export does not hold: `[image: plan.png]`."""
    said = " ".join(str(name).split()) if name else ""
    return f"[{kind}: {said}]" if said else f"[{kind}]"


def join_parts(*parts: str) -> str:
    """Texts below each other, with a line between them; empty ones are left out."""
    return "\n\n".join(part for part in parts if part.strip())
