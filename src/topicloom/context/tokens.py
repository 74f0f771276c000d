"""Counting tokens: the contract, the choice of a counter, and the evaluation's own measure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from threading import Lock
from typing import Protocol

from cachetools import LRUCache, cached
from langchain_core.messages import BaseMessage

from topicloom.context.token_count import (
    CounterByText,
    EncodingName,
    EstimatingCounter,
    ToolLike,
)
from topicloom.context.token_ranks import RANK_FILES, RankFile, TiktokenCounter

_CL100K = re.compile(r"gpt-4(?![o.\d])|gpt-3|gpt-35")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")


class TokenCounter(Protocol):
    """Counts input tokens of one model; safe to call from several threads."""

    def text(self, text: str) -> int:
        """Count the tokens of `text`; 0 only for ""."""
        ...

    def message(self, message: BaseMessage) -> int:
        """Count a message as sent: frame, name, content blocks and tool calls.

        An image is a flat cost. A request is the sum of its messages and tools.
        """
        ...

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """Count the JSON schemas of bound tools; 0 for none."""
        ...


def choose_counter(
    model_name: str, rank_files: Mapping[str, RankFile] = RANK_FILES
) -> TokenCounter:
    """The most exact counter that is on this machine, else the estimate; nothing is ever fetched.

    `model_name` may have a provider prefix; vocabularies may lie in tiktoken's cache, by encoding.
    """
    encoding = choose_encoding(model_name)
    ranks = rank_files.get(encoding)
    exact = TiktokenCounter.open(ranks) if ranks else None
    return exact or EstimatingCounter(encoding)


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


class CachedTokenCounter(CounterByText):
    """A token counter that remembers what another one said of longer texts.

    Only digests are kept, the longest unused are forgotten first. Safe in several threads.
    """

    def __init__(self, counter: TokenCounter, *, capacity: int = 50_000) -> None:
        self._counter = counter
        known: LRUCache[bytes, int] = LRUCache(capacity)
        self._count_long = cached(known, key=_digest, lock=Lock())(counter.text)

    def text(self, text: str) -> int:
        """Count the tokens of a text."""
        count = self._counter.text if len(text) <= _MIN_CACHED_CHARACTERS else self._count_long
        return count(text)

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """Count the JSON schemas of bound tools."""
        return self._counter.tools(tools)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
