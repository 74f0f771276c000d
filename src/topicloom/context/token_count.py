"""Tokens of a message and of a set of bound tools, given a way to count text.

Every counter walks messages the same way and differs only in how it counts a string. The
constants are OpenAI's where OpenAI states them (cookbook, "How to count tokens with tiktoken",
sections 6 and 7, and the vision guide). Other providers differ by a few tokens a message, which
`TokenCalibration` takes up.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from topicloom.state.content_blocks import CALLS, get_block_text, get_media_kind, is_text

CountText = Callable[[str], int]
"""Tokens of a text."""

ToolLike = dict[str, Any] | type[BaseModel] | Callable[..., Any] | BaseTool
"""Whatever `bind_tools` takes."""

MESSAGE_TOKENS = 4
"""Frame of one message: three tokens and its role."""

NAME_TOKENS = 1
"""Tokens of a `name` beside its own text."""

TOOL_CALL_TOKENS = 6
"""Frame of one tool call beside its name and arguments; not documented, an estimate."""

TOOL_RESULT_TOKENS = 3
"""The link from a tool's result to its call, as langchain-openai counts it."""

IMAGE_TOKENS = 765
"""An image of unknown size: 1,024 x 1,024 in high detail (85 + 4 tiles of 170)."""

LOW_DETAIL_IMAGE_TOKENS = 85
"""An image sent with `detail: low`, of any size."""

_THOUGHT_KEYS = ("reasoning", "thinking")


def _count_content(message: BaseMessage, count: CountText) -> int:
    if isinstance(message.content, str):
        return count(message.content)
    return sum(
        count(block) if isinstance(block, str) else _count_block(block, count)
        for block in message.content
    )


def _count_block(block: dict[str, Any], count: CountText) -> int:
    """Count one content block; images and other media are a flat cost, calls are not here."""
    kind = str(block.get("type"))
    if kind in CALLS:
        return 0  # providers repeat them in `tool_calls`, where they are counted
    if is_text(block):
        return count(get_block_text(block))
    source = block.get("source")
    parts = block.get("content") or (source.get("content") if isinstance(source, Mapping) else None)
    if isinstance(parts, list):  # such as a result with images in it
        return sum(_count_block(part, count) for part in parts if isinstance(part, dict))
    if medium := get_media_kind(block):
        low = medium == "image" and _get_detail(block) == "low"
        return LOW_DETAIL_IMAGE_TOKENS if low else IMAGE_TOKENS
    texts = [block[key] for key in _THOUGHT_KEYS if isinstance(block.get(key), str)]
    return sum(map(count, texts)) if texts else count(to_json(block))


def _get_detail(block: Mapping[str, Any]) -> object:
    """The `detail` of an image: OpenAI nests it, LangChain's blocks do not."""
    image = block.get("image_url")
    return image.get("detail") if isinstance(image, Mapping) else block.get("detail")


def _count_calls(message: AIMessage, count: CountText) -> int:
    calls = [(call["name"], to_json(call["args"])) for call in message.tool_calls]
    calls += [(call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls]
    return sum(TOOL_CALL_TOKENS + count(name) + count(args) for name, args in calls)


def to_json(value: object) -> str:
    """A value as JSON that people can read; of what is no JSON, its text."""
    return json.dumps(value, ensure_ascii=False, default=str)


EncodingName = Literal["o200k", "cl100k", "deepseek", "claude"]
"""The tokenizers there are prices for; `claude` is that of older Claude models."""

_CJK_PRICES: Mapping[str, int] = {"o200k": 80, "cl100k": 125, "deepseek": 60, "claude": 110}
_WORD, _LETTER_BEYOND_SIX = 100, 11
_THREE_DIGITS, _TWO_PUNCTUATION, _NEWLINES, _INDENT, _OTHER = 150, 50, 100, 80, 50


_LATIN = "A-Za-z\u00c0-\u024f"
_CJK = "\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK += "\U00020000-\U0003ffff"
_PUNCTUATION = "!-/:-@\\[-`{-~"
_RUN = re.compile(
    f"[{_LATIN}]+(?:'[a-z]{{1,2}}(?![{_LATIN}]))?"  # "don't" and "we'll" are one word
    f"|[{_CJK}]+|[{_PUNCTUATION}]+|[0-9]+|[\r\n]+|[ \t]{{2,}}|\t"
    f"|[^{_LATIN}{_CJK}{_PUNCTUATION}0-9\r\n\t ]+"
)
"""One run; a single space is in none, because tokenizers join it to the word that follows."""
CJK_START = re.compile(f"[{_CJK}]")
"""The first character of a run of CJK."""


class TokenCounter(Protocol):
    """Counts input tokens of one model; safe to call from several threads."""

    @abstractmethod
    def text(self, text: str) -> int:
        """Count the tokens of `text`; 0 only for ""."""

    def message(self, message: BaseMessage) -> int:
        """Count a message as sent: frame, name, content blocks and tool calls.

        An image is a flat cost. A request is the sum of its messages and tools.
        """
        total = MESSAGE_TOKENS + _count_content(message, self.text)
        if message.name:
            total += NAME_TOKENS + self.text(message.name)
        if isinstance(message, AIMessage):
            total += _count_calls(message, self.text)
            thoughts = message.additional_kwargs.get("reasoning_content")
            total += self.text(thoughts) if isinstance(thoughts, str) else 0
        if isinstance(message, ToolMessage):
            total += TOOL_RESULT_TOKENS
        return total

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """Count the JSON schemas of bound tools; 0 for none.

        OpenAI rewrites schemas into something shorter (67 tokens where this gives 78 for the
        cookbook's weather tool), others send about the JSON: this is on the high side.
        """
        schemas = (convert_to_openai_tool(tool) for tool in tools)
        return sum(self.text(to_json(schema.get("function", schema))) for schema in schemas)


def count_runs(text: str) -> Iterator[tuple[str, int, int]]:
    """The runs of a text: the first character, the length, and how many there are of such a run."""
    for run, times in Counter(_RUN.findall(text)).items():
        yield run[0], len(run), times


class EstimatingCounter(TokenCounter):
    """Counts tokens by the kinds of characters in a text; needs no file and no network."""

    def __init__(self, encoding: EncodingName) -> None:
        """Take the prices of `encoding`."""
        self._cjk_price = _CJK_PRICES[encoding]

    def text(self, text: str) -> int:
        """Estimate the tokens of `text`, rounded to the nearest; 0 only for ""."""
        runs = count_runs(text)
        hundredths = sum(times * self._price(first, length) for first, length, times in runs)
        return max((hundredths + 50) // 100, 1 if text else 0)

    def _price(self, first: str, length: int) -> int:
        """Price a run, in hundredths of a token; its first character tells its kind."""
        if not first.isascii():
            return self._price_beyond_ascii(first, length)
        if first.isalpha():
            return _price_word(length)
        if first.isdigit():
            return _THREE_DIGITS * -(-length // 3)
        if first in "\r\n":
            return _NEWLINES
        if first in " \t":
            return _INDENT
        if first.isprintable():
            return _TWO_PUNCTUATION * -(-length // 2)
        return _OTHER * length

    def _price_beyond_ascii(self, first: str, length: int) -> int:
        """Price a run of CJK, of accented Latin, or of anything else, CJK punctuation included."""
        if CJK_START.match(first):
            return self._cjk_price * length
        return _price_word(length) if "\u00c0" <= first <= "\u024f" else _OTHER * length


def _price_word(length: int) -> int:
    return _WORD + _LETTER_BEYOND_SIX * max(0, length - 6)
