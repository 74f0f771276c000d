"""Counting tokens: the choice of a counter, and the evaluation's own measure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import Lock

from cachetools import LRUCache, cached

from topicloom.context.token_count import EncodingName, EstimatingCounter, TokenCounter, ToolLike
from topicloom.state.safe_text import hash_text

_CL100K = re.compile(r"gpt-4(?![o.\d])|gpt-3|gpt-35")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")


def choose_counter(model_name: str) -> TokenCounter:
    """The counter for a model, whose name may have a provider prefix; nothing is ever fetched."""
    return EstimatingCounter(choose_encoding(model_name))


def choose_encoding(model_name: str) -> EncodingName:
    """Name the tokenizer of a model; o200k, the current OpenAI one, for any unknown."""
    name = model_name.lower()
    if "deepseek" in name:
        return "deepseek"
    if "claude" in name:
        return "claude"
    return "cl100k" if _CL100K.search(name) else "o200k"


def count_budget_tokens(text: str) -> int:
    """Measure `text` as the evaluation does: a CJK character or four other characters.

    CJK takes in kana, hangul, CJK punctuation and full-width forms. Rounded up.
    """
    cjk = sum(map(len, _CJK.findall(text)))
    return cjk + -(-(len(text) - cjk) // 4)


_MIN_CACHED_CHARACTERS = 200
"""Characters up to which counting is as cheap as remembering."""


class CachedTokenCounter(TokenCounter):
    """A token counter that remembers what another one said of longer texts.

    No text is kept, the longest unused are forgotten first.
    """

    def __init__(self, counter: TokenCounter, *, capacity: int = 50_000) -> None:
        self._counter = counter
        known: LRUCache[tuple[int, int], int] = LRUCache(capacity)
        self._count_long = cached(known, key=hash_text, lock=Lock())(counter.text)

    def text(self, text: str) -> int:
        count = self._counter.text if len(text) <= _MIN_CACHED_CHARACTERS else self._count_long
        return count(text)

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """Count the JSON schemas of bound tools."""
        return self._counter.tools(tools)
