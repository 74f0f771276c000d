"""Messages as they are stored, and their conversion from and to LangChain's."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, Self, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
)
from pydantic import BaseModel

from topicloom.state.content_blocks import get_block_text, get_media_kind, is_broken
from topicloom.state.safe_text import shorten_query


def parse_iso_seconds(time: str) -> float | None:
    """Seconds since the epoch of an ISO 8601 time, of one without a zone as UTC; else None."""
    try:
        moment = datetime.fromisoformat(time)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None


MessageRole = Literal["user", "assistant", "tool", "system"]

_ROLE_OF_TYPE: Mapping[str, MessageRole] = {
    "human": "user",
    "ai": "assistant",
    "tool": "tool",
    "system": "system",
}
_EXCLUDED_FIELDS = {"usage_metadata"}
_OF_STORED = frozenset({"time", "origin", "of_another"})
"""The keys of a message's `additional_kwargs` that are fields of what is stored."""
_CONTENT_KEYS = ("output_version", "model_provider")
"""What of a reply's metadata says how its content blocks are to be read."""

REMOVED = "(removed on request)"
"""The text of a purged message."""


class StoredMessage(BaseModel, frozen=True):
    """One message of the conversation, exactly as it was said.

    The short id is the place in the conversation: the 42nd message is `m42`. Models copy
    short numbers faithfully where they garble UUIDs.
    """

    seq: int
    """Place in the conversation, from 1."""
    role: MessageRole
    """The speaker's part in the conversation."""
    text: str
    """The text of the message; of content blocks, their text parts joined by newlines."""
    time: str
    """Time it was said at, ISO 8601 with offset."""
    speaker: str | None = None
    """The message's `name`: a person in a conversation of several."""
    source: str | None = None
    """The id that the application gave the message."""
    opens: bool = False
    """True if the boundary adsorber saw a topic begin with this message."""
    begins: bool = False
    """True if a conversation begins with this message for certain: an import says so."""
    chat: str | None = None
    """The imported chat that it belongs to, by the id of the chat's first message. A chat is one
    topic."""
    origin: str | None = None
    """The format of the export that it was imported from, such as `whatsapp`; None if it was said
    here."""
    of_another: bool = False
    """True if it stands in an import as a person's words, and that person is not the user."""
    query: str | None = None
    """The text with its references resolved, where a rewriter changed it."""
    whole: dict[str, Any] | None = None
    """The message as LangChain data, where text alone would not give it back (tool calls...)."""

    def __copy__(self) -> Self:
        copied = super().__copy__()
        for made in ("id", "message"):  # of fields that `model_copy` may change
            vars(copied).pop(made, None)
        return copied

    @cached_property
    def id(self) -> str:
        """The short id, `m<seq>`."""
        return f"m{self.seq}"

    @property
    def of_user(self) -> bool:
        """True for the user's own words."""
        return self.role == "user" and not self.of_another

    @property
    def day(self) -> str:
        """The day it was said on, `2026-03-02`."""
        return self.time[:10]

    @property
    def label(self) -> str:
        """The name to show before the text: the speaker, else the role."""
        return self.speaker or self.role

    @property
    def line(self) -> str:
        """`speaker: text`, which is what is searched and embedded."""
        return f"{self.label}: {self.text}"

    @property
    def as_query(self) -> str:
        """What is searched for where it asks: of a very long text its beginning and its end."""
        return shorten_query(self.text)

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The content blocks, if it has any."""
        content = self.message.content if self.whole is not None else ()
        return [b for b in content if isinstance(b, dict)]

    @property
    def media(self) -> list[dict[str, Any]]:
        """The content blocks that hold images, sounds, videos or files, and can be read."""
        return [b for b in self.blocks if get_media_kind(b) and not is_broken(b)]

    @cached_property
    def message(self) -> AnyMessage:
        """The message as LangChain has it, equal in content to what came in. Not to be changed."""
        if self.whole is not None:
            kind = next(t for t, role in _ROLE_OF_TYPE.items() if role == self.role)
            kind = self.whole.get("type", kind)
            return cast("AnyMessage", messages_from_dict([{"type": kind, "data": self.whole}])[0])
        if self.role == "assistant":
            return AIMessage(content=self.text, name=self.speaker, id=self.source)
        return HumanMessage(content=self.text, name=self.speaker, id=self.source)


MARKS = {"opens", "begins", "chat", "origin", "of_another"}
"""The fields that say where topics begin and what was imported. They stay where a message is
changed or purged."""


def to_stored_message(message: BaseMessage, *, seq: int, time: str) -> StoredMessage:
    """The message as it is stored, of any kind of LangChain's.

    `seq` counts from 1. The ISO 8601 `time` gives way to one in `additional_kwargs["time"]`;
    imports give `origin` and `of_another` there.
    """
    given = message.additional_kwargs
    own_time, origin = given.get("time"), given.get("origin")
    return StoredMessage(
        seq=seq,
        role=_get_role(message),
        text=get_text(message),
        time=own_time if isinstance(own_time, str) and own_time else time,
        speaker=message.name,
        source=message.id,
        origin=origin if isinstance(origin, str) and origin else None,
        of_another=given.get("of_another") is True,
        whole=None if is_plain(message) else _dump_message(message),
    )


def number_messages(messages: Iterable[BaseMessage], first: int, time: str) -> list[StoredMessage]:
    """New messages as they are stored, from number `first` on."""
    return [to_stored_message(m, seq=n, time=time) for n, m in enumerate(messages, first)]


def _get_role(message: BaseMessage) -> MessageRole:
    """The role of a message; of LangChain's older kinds, a chat message names its role itself."""
    kind = get_message_type(message)
    if kind in _ROLE_OF_TYPE:
        return _ROLE_OF_TYPE[kind]
    if kind == "function":
        return "tool"
    named = getattr(message, "role", None)
    return next((role for role in _ROLE_OF_TYPE.values() if role == named), "user")


def measure_gap(earlier: StoredMessage, later: StoredMessage) -> float:
    """Hours from one message to another; 0 where their times can't be compared."""
    try:
        since = datetime.fromisoformat(later.time) - datetime.fromisoformat(earlier.time)
    except (ValueError, TypeError):  # no ISO time, or only one of them with a zone
        return 0.0
    return since.total_seconds() / 3600


def get_message_type(message: BaseMessage) -> str:
    """`human`, `ai`, `tool` or `system`; chunks count as what they are chunks of."""
    return message.type.removesuffix("MessageChunk").lower()


def get_text(message: BaseMessage) -> str:
    """The text of a message; text parts of content blocks joined by newlines."""
    content = message.content
    if isinstance(content, str):
        return content
    return "\n".join(part for part in map(get_block_text, content) if part)


def is_plain(message: BaseMessage) -> bool:
    """True for a message of which its text says all, beside who said it and when."""
    if not isinstance(message.content, str) or isinstance(message, ToolMessage):
        return False
    if get_message_type(message) not in ("human", "ai"):
        return False
    extra = {k for k, v in message.additional_kwargs.items() if v is not None} - _OF_STORED
    calls = isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls)
    return not (extra or calls)


def _dump_message(message: BaseMessage) -> dict[str, Any]:
    known_by_role = {"type"} if get_message_type(message) in _ROLE_OF_TYPE else set[str]()
    data = to_native(message.model_dump(exclude=_EXCLUDED_FIELDS | known_by_role))
    for field in _OF_STORED & data["additional_kwargs"].keys():
        del data["additional_kwargs"][field]
    metadata = data.get("response_metadata", {})
    data["response_metadata"] = {key: metadata[key] for key in _CONTENT_KEYS if metadata.get(key)}
    return {k: v for k, v in data.items() if v not in (None, [], {})} | {"content": data["content"]}


def to_native(value: Any) -> Any:
    """The value as plain JSON data; what JSON cannot hold (a tool's artifact) becomes text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(k): to_native(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_native(v) for v in value]
    if isinstance(value, BaseModel):
        return to_native(value.model_dump())
    return b64encode(value).decode() if isinstance(value, bytes) else repr(value)
