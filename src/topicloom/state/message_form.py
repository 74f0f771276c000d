"""The form that a message must have to be taken in: the one place that says which.

Whoever puts a message into a channel asks here. What passes can be stored, read again and shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langgraph.types import Overwrite

from topicloom.errors import InputError
from topicloom.state.safe_text import clip, describe_error
from topicloom.state.stored_message import is_plain, make_message_key, to_stored_message

_SHOWN = 60
"""Characters shown of a value that cannot be used."""


def check_message(message: BaseMessage) -> None:
    """Raise `InputError`, which names the value, if a message cannot be taken in."""
    if fault := find_form_fault(message):
        raise InputError(fault)


def find_form_fault(message: BaseMessage) -> str:
    """What is wrong with the form of a message, in a sentence with the way out; "" for nothing."""
    if is_plain(message):
        return ""
    blocks = message.content if isinstance(message.content, list) else ()
    for number, block in enumerate(blocks, start=1):
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str | int | float | None):
            return (
                f"content block {number} of the message has the type {_show(kind)}: a type is a"
                ' text, such as "text" or "image_url"'
            )
    try:
        make_message_key(message)
        to_stored_message(message, seq=1, time="")
    except (TypeError, ValueError, AttributeError, KeyError, RecursionError) as error:
        return (
            f"the message {_show(message.content)} cannot be stored ({describe_error(error)}):"
            " give a text, or content blocks of plain JSON"
        )
    return ""


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


def select_usable(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], dict[str, str]]:
    """The messages of a channel that can be taken in, in the place of those that came before.

    A graph or an agent around a session keeps what it was given, and so did version 0.1.0: without
    this, a message that was refused would fail every later turn.

    Returns:
        The messages, and what is wrong with each that was left out, by its id.

    Raises:
        InputError: The newest cannot be taken in: it is what this turn brings.
    """
    for message in messages[-1:]:
        check_message(message)
    found = {n: find_form_fault(m) for n, m in enumerate(messages)}
    faults = {messages[n].id or "": fault for n, fault in found.items() if fault}
    return [m for n, m in enumerate(messages) if not found[n]], faults


def _show(value: object) -> str:
    try:
        return clip(repr(value), _SHOWN)
    except RecursionError:
        return "(nested without end)"
