"""Messages as providers take them: names, calls with their results, content in blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from topicloom.prompts.wording import get_wording
from topicloom.state.language import Language

Block = dict[str, Any]
"""A content block."""
_UNSENDABLE = re.compile(r"[\s<|\\/>]+")


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
