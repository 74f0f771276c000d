"""The rules by which providers' caches serve prompts, as their documentation has them.

- `openai`, before GPT-5.6: the longest common prefix, from 1,024 tokens on in steps of 128.
- `openai-5.6`: prefixes that end where an earlier prompt ended or had a breakpoint.
- `anthropic`: prefixes written at a `cache_control`, looked for up to 20 blocks before one.
- `deepseek`: whole units: a prompt, one with its answer, what two prompts had in common.

A prompt is compared with all earlier ones that the cache still holds, not just with the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, takewhile
from types import MappingProxyType

from topicloom_lab.caching.measure import (
    CacheRule,
    Prices,
    PromptPart,
    SentPrompt,
    Served,
    prefixes,
)

_LEAST = 1_024
"""Tokens under which OpenAI caches nothing."""
_FREE, _PAID = Prices(read=0.1), Prices(read=0.1, write=1.25)
"""Prices of providers that ask nothing for a write, and of those that do."""


@dataclass(slots=True)
class OpenAIRule(CacheRule):
    """OpenAI before GPT-5.6: automatic, by tokens, without marks."""

    seconds: float = 600.0
    """OpenAI says 5 to 10 minutes, up to an hour."""
    prices: Prices = _FREE
    _next: dict[bytes, dict[str, float]] = field(default_factory=dict, init=False)
    """After each prefix, the texts of the parts that came next, with when."""

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        digests = [b"", *prefixes(prompt.parts)]
        whole = sum(takewhile(bool, (self._is_held(d, prompt.at) for d in digests[1:])))
        matched = sum(part.tokens for part in prompt.parts[:whole])
        for part in prompt.parts[whole : whole + 1]:
            # Of a part that differs, what some part began with that followed the same prefix.
            followed = self._next.get(digests[whole], {}).items()
            others = [text for text, last in followed if prompt.at - last <= self.seconds]
            shared = max((_alike(part.text, other) for other in others), default=0)
            matched += part.tokens * shared // max(1, len(part.text))
        for before, digest, part in zip(digests, digests[1:], prompt.parts, strict=False):
            self._used[digest] = prompt.at
            self._next.setdefault(before, {})[part.text] = prompt.at
        read = matched - (matched - _LEAST) % 128 if matched >= _LEAST else 0
        return Served(prompt.tokens, read, 0, 1)


@dataclass(slots=True)
class BreakpointRule(CacheRule):
    """OpenAI from GPT-5.6: the end of the newest message is a breakpoint, others can be set."""

    seconds: float = 1_800.0
    prices: Prices = _PAID
    explicit: bool = False
    """True if the prompts' own breakpoints are sent as well."""

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        digests, sizes = prefixes(prompt.parts), _sizes(prompt.parts)
        hit = self._find_longest(digests, prompt.at)
        # Four writes a request, and the end of the newest message takes one.
        marks = [*(prompt.breakpoints[:3] if self.explicit else ()), len(digests)]
        for mark in [*marks, *([hit] if hit else [])]:
            if sizes[mark] >= _LEAST:
                self._used[digests[mark - 1]] = prompt.at
        written = max(0, sizes[-1] - sizes[hit]) if sizes[-1] >= _LEAST else 0
        return Served(prompt.tokens, sizes[hit], written, 1)


@dataclass(slots=True)
class AnthropicRule(CacheRule):
    """Anthropic: up to four `cache_control` marks; without any, nothing is cached."""

    seconds: float = 300.0
    """5 minutes, or an hour if paid for."""
    prices: Prices = _PAID
    least: int = 1_024
    """Tokens under which nothing is cached; 512 to 4,096 by model."""
    look_back: int = 20
    """Blocks before a mark, itself included, at which a prefix is looked for."""

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        digests, sizes = prefixes(prompt.parts), _sizes(prompt.parts)
        marks = prompt.breakpoints[-4:]
        seen = {n for m in marks for n in range(max(1, m - self.look_back + 1), m + 1)}
        hit = max((n for n in seen if self._is_held(digests[n - 1], prompt.at)), default=0)
        for mark in [*marks, *([hit] if hit else [])]:
            if sizes[mark] >= self.least:
                self._used[digests[mark - 1]] = prompt.at
        last = max((sizes[m] for m in marks if sizes[m] >= self.least), default=0)
        return Served(prompt.tokens, sizes[hit], max(0, last - sizes[hit]), 1)


@dataclass(slots=True)
class DeepSeekRule(CacheRule):
    """DeepSeek: whole units on disk; those it writes at fixed distances are left out."""

    seconds: float = 7_200.0
    """DeepSeek says hours to days."""
    prices: Prices = _FREE
    _seen: dict[bytes, float] = field(default_factory=dict, init=False)
    """When each prefix of a prompt came last, for what two have in common."""

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        parts = [*prompt.parts, *([prompt.reply] if prompt.reply else [])]
        digests, sizes = prefixes(parts), _sizes(parts)
        asked = len(prompt.parts)
        hit = self._find_longest(digests[:asked], prompt.at)
        came = (self._seen.get(digest, -math.inf) for digest in digests[:asked])
        common = sum(takewhile(bool, (prompt.at - at <= self.seconds for at in came)))
        self._seen |= dict.fromkeys(digests, prompt.at)
        for unit in {hit, common, asked, len(digests)} - {0}:
            self._used[digests[unit - 1]] = prompt.at
        return Served(prompt.tokens, sizes[hit], 0, 1)


def _sizes(parts: Sequence[PromptPart]) -> list[int]:
    """Tokens of the first 0, 1, 2 ... parts."""
    return list(accumulate((part.tokens for part in parts), initial=0))


def _alike(one: str, other: str) -> int:
    """Characters that both texts begin with."""
    return sum(takewhile(bool, (a == b for a, b in zip(one, other, strict=False))))


RULES: Mapping[str, Callable[[], CacheRule]] = MappingProxyType(
    {
        "openai": OpenAIRule,
        "openai-5.6": BreakpointRule,
        "openai-5.6, explicit": partial(BreakpointRule, explicit=True),
        "anthropic": AnthropicRule,
        "deepseek": DeepSeekRule,
    }
)
"""Makes an empty cache, by the name of its rule."""
