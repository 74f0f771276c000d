"""Messages as providers take them: names, calls with their results, content within a limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from topicloom.context.token_count import CountText, to_json
from topicloom.context.transcript import is_text
from topicloom.prompts.wording import get_wording
from topicloom.state.language import Language
from topicloom.state.stored_message import MEDIA, StoredMessage

Block = dict[str, Any]
"""A content block."""
Shorten = Callable[[str, int], str]
"""A text, or as much of it as so many tokens hold."""
_UNSENDABLE = re.compile(r"[\s<|\\/>]+")
_LEAST_SHARE = 8
"""Tokens of a text in arguments, at the least of limits that are tried."""


def sanitize_name(message: AnyMessage) -> AnyMessage:
    """The message under a name that providers take: OpenAI refuses blanks and `<|\\/>` in one."""
    if message.name is None or not _UNSENDABLE.search(message.name):
        return message
    return message.model_copy(update={"name": _UNSENDABLE.sub("_", message.name)})


def pair_tool_calls(messages: Sequence[BaseMessage], language: Language) -> list[BaseMessage]:
    """Calls with results and results with calls: providers refuse the one without the other.

    A call that was cut off is given a result that says so, and so is one whose result is empty; a
    result that nothing called for becomes the user's.
    """
    cut_off = get_wording(language).cut_off
    whole: list[BaseMessage] = []
    due: dict[str | None, str | None] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            called = message.tool_call_id in due
            whole.append(message if called else HumanMessage(message.content or cut_off))
            due.pop(message.tool_call_id, None)
            continue
        whole += _make_missing_results(due, cut_off)
        due = {}
        if isinstance(message, AIMessage):
            calls = [*message.tool_calls, *message.invalid_tool_calls]
            due = {c["id"]: c["name"] for c in calls}
        whole.append(message)
    return whole + _make_missing_results(due, cut_off)


def _make_missing_results(due: Mapping[str | None, str | None], text: str) -> list[ToolMessage]:
    return [ToolMessage(text, tool_call_id=i or "", name=name) for i, name in due.items()]


def append_content(message: AnyMessage, text: str, blocks: Sequence[Block]) -> AnyMessage:
    """The message with a text and content blocks behind its own."""
    content = message.content
    if isinstance(content, str) and not blocks:
        return message.model_copy(update={"content": f"{content}\n\n{text}"}) if text else message
    parts: list[str | Block] = [content] if isinstance(content, str) else [*content]
    parts += [{"type": "text", "text": text}] if text else []
    return message.model_copy(update={"content": [*parts, *blocks]})


def select_rest(stored: StoredMessage) -> AnyMessage:
    """A message of what is neither text nor media in another: calls, thoughts, other blocks."""
    rest = [b for b in stored.blocks if not (is_text(b) or str(b.get("type")) in MEDIA)]
    return stored.message.model_copy(update={"content": rest, "name": None})


def flatten(
    message: AnyMessage,
    said: str,
    media: Sequence[Block],
    limit: int,
    shorten: Shorten,
    count: CountText,
) -> AnyMessage:
    """The message with this text, these media and its calls alone.

    These keep so much of their arguments as `limit` tokens hold, about.
    """
    update: dict[str, Any] = {"content": [{"type": "text", "text": said}, *media]}
    if isinstance(message, AIMessage):
        each = limit // max(1, len(message.tool_calls) + len(message.invalid_tool_calls))
        for field in ("tool_calls", "invalid_tool_calls"):
            update[field] = [
                {**call, "args": _shorten_arguments(call["args"], each, shorten, count)}
                for call in getattr(message, field)
            ]
    return message.model_copy(update=update if media else update | {"content": said})


def _shorten_arguments(args: Any, limit: int, shorten: Shorten, count: CountText) -> Any:
    """Arguments with the long texts in them in part; else their JSON, in part."""

    def size(value: Any) -> int:
        return count(to_json(value))

    share, best = limit, args
    while size(best) > limit and share >= _LEAST_SHARE:
        best, share = _shorten_texts(args, share, shorten), share // 2
    if size(best) > limit and isinstance(args, dict):
        best = {"arguments": shorten(to_json(args), limit)}
    return min(args, best, key=size)


def _shorten_texts(value: Any, limit: int, shorten: Shorten) -> Any:
    if isinstance(value, str):
        return shorten(value, limit)
    if isinstance(value, Mapping):
        return {key: _shorten_texts(item, limit, shorten) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten_texts(item, limit, shorten) for item in value]
    return value
