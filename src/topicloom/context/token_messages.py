"""What a message and a set of bound tools cost, given a way to count text.

Every counter walks messages the same way and differs only in how it counts a string. The
constants are OpenAI's where OpenAI states them (cookbook, "How to count tokens with tiktoken",
sections 6 and 7, and the vision guide). Other providers differ by a few tokens a message, which
`Correction` takes up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

CountText = Callable[[str], int]
"""Tokens of a text."""

ToolLike = dict[str, Any] | type[BaseModel] | Callable[..., Any] | BaseTool
"""Whatever `bind_tools` takes."""

MESSAGE_TOKENS = 4
"""Frame of one message: three tokens and its role."""

NAME_TOKENS = 1
"""What a `name` costs beside its own text."""

TOOL_CALL_TOKENS = 6
"""Frame of one tool call beside its name and arguments; not documented, an estimate."""

TOOL_RESULT_TOKENS = 3
"""The link from a tool's result to its call, as langchain-openai counts it."""

IMAGE_TOKENS = 765
"""An image of unknown size: 1,024 x 1,024 in high detail (85 + 4 tiles of 170)."""

LOW_DETAIL_IMAGE_TOKENS = 85
"""An image sent with `detail: low`, of any size."""

_IMAGES = frozenset({"image", "image_url", "input_image"})
_MEDIA = frozenset({"audio", "input_audio", "video", "file", "input_file", "document"})
_CALLS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "function_call", "input_json_delta"}
)
_TEXT_KEYS = ("text", "reasoning", "thinking")


def message_tokens(message: BaseMessage, count: CountText) -> int:
    """Count one message: frame, name, content, tool calls, link to a tool call."""
    total = MESSAGE_TOKENS + _content_tokens(message, count)
    if message.name:
        total += NAME_TOKENS + count(message.name)
    if isinstance(message, AIMessage):
        total += _call_tokens(message, count)
    if isinstance(message, ToolMessage):
        total += TOOL_RESULT_TOKENS
    return total


def tools_tokens(tools: Sequence[ToolLike], count: CountText) -> int:
    """Count the JSON schemas of bound tools; 0 for none.

    OpenAI rewrites schemas into something shorter (67 tokens where this gives 78 for the
    cookbook's weather tool), others send about the JSON: this is on the high side.
    """
    schemas = (convert_to_openai_tool(tool) for tool in tools)
    return sum(count(_json(schema.get("function", schema))) for schema in schemas)


def _content_tokens(message: BaseMessage, count: CountText) -> int:
    if isinstance(message.content, str):
        return count(message.content)
    return sum(
        count(block) if isinstance(block, str) else _block_tokens(block, count)
        for block in message.content
    )


def _block_tokens(block: Mapping[str, Any], count: CountText) -> int:
    """Count one content block; images and other media are a flat cost, calls are not here."""
    kind = block.get("type")
    if kind in _CALLS:
        return 0  # providers repeat them in `tool_calls`, where they are counted
    if kind in _IMAGES:
        return LOW_DETAIL_IMAGE_TOKENS if _detail(block) == "low" else IMAGE_TOKENS
    if kind in _MEDIA:
        return IMAGE_TOKENS
    texts = [block[key] for key in _TEXT_KEYS if isinstance(block.get(key), str)]
    return sum(map(count, texts)) if texts else count(_json(block))


def _detail(block: Mapping[str, Any]) -> object:
    """Say how closely the model shall look: OpenAI nests it, LangChain's blocks do not."""
    image = block.get("image_url")
    return image.get("detail") if isinstance(image, Mapping) else block.get("detail")


def _call_tokens(message: AIMessage, count: CountText) -> int:
    calls = [(call["name"], _json(call["args"])) for call in message.tool_calls]
    calls += [(call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls]
    return sum(TOOL_CALL_TOKENS + count(name) + count(args) for name, args in calls)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
