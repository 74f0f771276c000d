"""The door for messages: the one place that says which can be taken in, and in what form.

Whoever puts a message into a channel asks here. What passes can be stored, held in a checkpoint,
read again and shown. What can be kept in another form is: an integer of more than 64 bits as a
text, bytes as base64, what is nested too deep as its JSON, half of a character as U+FFFD.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage, convert_to_messages
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Overwrite
from pydantic import BaseModel

from topicloom.errors import InputError
from topicloom.state.identity import make_message_key
from topicloom.state.safe_text import clip, describe_error, replace_surrogates
from topicloom.state.stored_message import is_plain, to_stored_message
from topicloom.texts import FilledText

LARGEST = 100_000_000
"""Characters of a message at most, of all that is in it."""
MOST_PARTS = 200_000
"""Values in a message at most: texts, numbers, lists and objects."""
DEEPEST = 60
"""Levels of a content block, or of arguments, below which values are kept as JSON texts."""
_ENDLESS = 10**9
"""More levels than Python goes down: it stops with an error of its own."""
_SMALLEST, _GREATEST = -(2**63), 2**64 - 1
"""Integers that a checkpoint can hold (msgpack)."""
_SHOWN = 60
"""Characters shown of a value that cannot be used."""
_DROPPED = "artifact_left_out"
"""Key in `additional_kwargs` of a result whose artifact no checkpoint can hold: its type."""
_CHANGEABLE = (
    *("id", "content", "name", "additional_kwargs", "response_metadata", "usage_metadata"),
    *("tool_calls", "invalid_tool_calls", "tool_call_chunks", "tool_call_id"),
)
_UNREADABLE = (TypeError, ValueError, AttributeError, KeyError, RecursionError)

_Message = TypeVar("_Message", bound=BaseMessage)


def make_storable(message: _Message) -> _Message:
    """The message in a form that can be kept: itself, if it is in one.

    Raises:
        InputError: It has none. The error names the value and the way out.
    """
    kept = _make_plain(message)
    if not isinstance(kept, ToolMessage) or _can_hold(kept.artifact):
        return kept
    left = {_DROPPED: type(kept.artifact).__name__}
    update = {"artifact": None, "additional_kwargs": kept.additional_kwargs | left}
    return kept.model_copy(update=update)


def _make_plain(message: _Message) -> _Message:
    try:
        parts = _Parts()
        names = (*_CHANGEABLE, *(message.model_extra or ()))
        given = {name: getattr(message, name, None) for name in names}
        kept = {name: parts.keep(value) for name, value in given.items()}
        changed = {n: v for n, v in kept.items() if v is not given[n]}
        plain = message.model_copy(update=changed) if changed else message
        fault = _find_fault(plain)
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(_say_unstorable(message, error)) from None
    if fault:
        raise InputError(fault)
    return plain


class _Parts:
    """Values of one message, counted as they are made fit to be kept."""

    def __init__(self) -> None:
        self._parts = self._characters = 0

    def keep(self, value: Any, level: int = 0) -> Any:
        """The value as plain JSON data; itself, if it is that."""
        self._count(value)
        if isinstance(value, str):
            return _join_halves(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            return self._keep_parts(value, level)
        if isinstance(value, int):
            return value if _SMALLEST <= value <= _GREATEST else _write_integer(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return b64encode(value).decode()
        if isinstance(value, BaseModel):
            return self.keep(value.model_dump(), level)
        return str(value)

    def _keep_parts(self, value: Any, level: int) -> Any:
        if level >= DEEPEST and value:
            return json.dumps(self._keep_parts(value, -_ENDLESS), ensure_ascii=False)
        if isinstance(value, Mapping):
            kept = {_name(key): self.keep(item, level + 1) for key, item in value.items()}
            same = all(key in value and value[key] is item for key, item in kept.items())
            return value if same and type(value) is dict and len(value) == len(kept) else kept
        items = [self.keep(item, level + 1) for item in value]
        if type(value) is list and all(a is b for a, b in zip(value, items, strict=True)):
            return value
        return items

    def _count(self, value: Any) -> None:
        self._parts += 1
        self._characters += len(value) if isinstance(value, str | bytes | bytearray) else 0
        if self._parts > MOST_PARTS:
            raise InputError(
                "the message has more than {most:,} values in its content or its calls: give them"
                " as one text, or in a file that a tool reads",
                most=MOST_PARTS,
            )
        if self._characters > LARGEST:
            raise InputError(
                "the message has more than {most:,} characters: give it in parts, or say where it"
                " is",
                most=LARGEST,
            )


def _name(key: object) -> str:
    return _join_halves(key if isinstance(key, str) else str(key))


def _join_halves(text: str) -> str:
    """A text that UTF-8 can hold: itself, if it has no halves of characters.

    A checkpoint would give another text back, and no provider takes it.
    """
    if text.isascii():
        return text
    joined = replace_surrogates(text)
    return text if joined == text else joined


def _write_integer(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # more digits than Python writes
        return hex(value)


def _can_hold(artifact: object) -> bool:
    """True if a checkpoint of LangGraph's can hold what a tool made."""
    if artifact is None or isinstance(artifact, str | bool):
        return True
    try:
        JsonPlusSerializer().dumps_typed(ToolMessage("", tool_call_id="", artifact=artifact))
    except Exception:  # noqa: BLE001 - objects of others raise anything
        return False
    return True


def _find_fault(message: BaseMessage) -> str:
    if is_plain(message):
        return ""
    blocks = message.content if isinstance(message.content, list) else ()
    for number, block in enumerate(blocks, start=1):
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str | int | float | None):
            return FilledText(
                "content block {number} of the message has the type {kind}: a type is a"
                ' text, such as "text" or "image_url"',
                number=number,
                kind=_show(kind),
            )
    try:
        make_message_key(message)
        to_stored_message(message, seq=1, time="")
    except _UNREADABLE as error:
        return _say_unstorable(message, error)
    return ""


def _say_unstorable(message: BaseMessage, error: BaseException) -> str:
    return FilledText(
        "the message {content} cannot be stored ({error}): give a text, or content blocks of plain"
        " JSON",
        content=_show(message.content),
        error=describe_error(error),
    )


def read_messages(values: object) -> list[AnyMessage]:
    """The messages of an input or an update; none that LangChain cannot read: it says so itself."""
    given = values.get("messages") if isinstance(values, Mapping) else None
    given = given.value if isinstance(given, Overwrite) else given
    if given is None:
        return []
    try:
        return cast(
            "list[AnyMessage]",
            convert_to_messages(given if isinstance(given, list | tuple) else [given]),
        )
    except (ValueError, TypeError, NotImplementedError, KeyError, AttributeError):
        return []


def make_update_storable(values: Any) -> Any:
    """An input or an update with its messages in a form that can be kept; itself if they are.

    Raises:
        InputError: One has none.
    """
    given = read_messages(values)
    kept = [make_storable(message) for message in given]
    if all(a is b for a, b in zip(given, kept, strict=True)):
        return values
    # What was given as text or as data stands as it is in the place of those that did not change.
    given = values["messages"]
    return {**values, "messages": Overwrite(kept) if isinstance(given, Overwrite) else kept}


def make_result_storable(name: str, result: Any) -> Any:
    """What a tool of that name gives, a message or a command, in a form that can be kept.

    Raises:
        InputError: A message has none.
    """
    try:
        return _make_result_storable(result)
    except InputError as error:
        raise InputError(
            "tool {name!r} returned something that cannot be stored: {error}",
            name=name,
            error=error,
        ) from error


def _make_result_storable(result: Any) -> Any:
    if isinstance(result, list):
        return [_make_result_storable(part) for part in result]
    if isinstance(result, Command):
        kept = make_update_storable(result.update)
        return result if kept is result.update else replace(result, update=kept)
    return make_storable(result) if isinstance(result, BaseMessage) else result


def select_usable(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], dict[str, str]]:
    """The messages of a channel that can be taken in, in the place of those that came before.

    A graph or an agent around a session keeps what it was given: without this, a message that was
    refused would fail every later turn.

    Returns:
        The messages, and what is wrong with each that was left out, by its id.

    Raises:
        InputError: The newest cannot be taken in: it is what this turn brings.
    """
    usable, faults = list[AnyMessage](), dict[str, str]()
    for place, message in enumerate(messages):
        try:
            usable.append(_make_plain(message))
        except InputError as error:
            if place == len(messages) - 1:
                raise
            faults[message.id or ""] = str(error)
    return usable, faults


def _show(value: object) -> str:
    try:
        return clip(repr(value), _SHOWN)
    except (RecursionError, ValueError):
        return "(nested without end)"
