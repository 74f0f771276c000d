"""Reading the messages of a turn before they are stored: what they say, which call tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from topicloom.errors import InputError
from topicloom.state.content_blocks import CALLS, THOUGHTS
from topicloom.state.safe_text import clip
from topicloom.state.session import SearchRequest
from topicloom.state.stored_message import get_message_type, get_text


def is_on_the_way(message: AnyMessage) -> bool:
    """True for a call of tools or what came of one: it stands between a message and its reply."""
    return isinstance(message, ToolMessage) or bool(getattr(message, "tool_calls", None))


def check_content(messages: Sequence[BaseMessage]) -> None:
    """Raise `InputError` if the newest message is a user's that says nothing."""
    if messages and not has_content(messages[-1]):
        raise InputError("the message is empty: give it a text or another content block")


def has_content(message: BaseMessage) -> bool:
    """False for a user's message that says nothing; a result, or a reply that calls, may."""
    return not isinstance(message, HumanMessage) or says_something(message)


def says_something(message: BaseMessage) -> bool:
    """True for a message with words, or with content blocks of another kind than thoughts."""
    blocks = message.content if isinstance(message.content, list) else []
    silent = THOUGHTS | {"text"}
    other = any(isinstance(b, dict) and b.get("type") not in silent for b in blocks)
    return other or bool(get_text(message).strip())


def split_visible(
    messages: Sequence[AnyMessage], keep: int
) -> tuple[Sequence[AnyMessage], Sequence[AnyMessage]]:
    """The messages that the channel shows no more, and the newest whole rounds, which it shows.

    These are at least `keep` messages if there are as many; the others are in storage.
    """
    starts = [i for i, m in enumerate(messages) if get_message_type(m) == "human"]
    first = max((i for i in starts if len(messages) - i >= keep), default=0)
    return messages[:first], messages[first:]


def find_edit_calls(message: BaseMessage, tool: str) -> list[tuple[str, object]]:
    """The calls of a tool in a message: their ids and their arguments, readable or not."""
    if not isinstance(message, AIMessage):
        return []
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return [(c["id"] or "", c["args"]) for c in calls if c["name"] == tool]


def find_other_calls(message: BaseMessage, *tools: str) -> list[dict[str, Any]]:
    """The calls in a message of all tools but some."""
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return [dict(c) for c in calls if c["name"] not in tools]


def find_search_request(message: AIMessage, tool: str) -> SearchRequest | None:
    """The search that a message asks for by its first call of the tool; None if it calls none.

    Arguments that make no sense count as not given; without a query, the message's own words do.
    """
    args = next((c["args"] for c in message.tool_calls if c["name"] == tool), None)
    if args is None:
        return None
    query, when = args.get("query"), args.get("when")
    return SearchRequest(
        query=clip(query if isinstance(query, str) else get_text(message)),
        when=clip(when) if isinstance(when, str) and when.strip() else None,
        include_archived=args.get("include_archived") is True,
        forgotten=args.get("forgotten") is True,
    )


def is_json_so_far(text: str) -> bool:
    """True if a text may be the beginning of JSON."""
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated") or error.pos >= len(text.rstrip()) - _UNFINISHED
    except (RecursionError, ValueError):  # an integer of too many digits
        return False
    return True


def breaks_off(arguments: str) -> bool:
    """True if the arguments of a call are the beginning of JSON, and not all of it.

    Empty ones are whole: many models write nothing for a tool without parameters.
    """
    if not arguments.strip():
        return False
    try:
        json.loads(arguments, strict=False)
    except (RecursionError, ValueError):
        return is_json_so_far(arguments)
    return False


_UNFINISHED = 12
"""Characters of the longest word of JSON, or escape, that may be unfinished at its end."""


def identify_calls(message: AIMessage) -> AIMessage:
    """The message, with an id for each tool call that has none, or that of another one."""
    ids = [call["id"] for call in message.tool_calls]
    calls = [
        call if id_ and id_ not in ids[:n] else {**call, "id": f"{message.id}-{n}"}
        for n, (call, id_) in enumerate(zip(message.tool_calls, ids, strict=True))
    ]
    return message.model_copy(update={"tool_calls": calls})


def put_before(message: AIMessage, begun: str) -> AIMessage:
    content = message.content
    whole = (
        begun + content if isinstance(content, str) else [{"type": "text", "text": begun}, *content]
    )
    return message.model_copy(update={"content": whole})


def strip_tool_calls(message: AIMessage) -> AIMessage:
    """The message without its tool calls, wherever a provider repeats them."""
    content = message.content
    if isinstance(content, list):
        content = [b for b in content if not (isinstance(b, dict) and b.get("type") in CALLS)]
    extra = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    bare = {"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": extra}
    return message.model_copy(update={"content": content, **bare})
