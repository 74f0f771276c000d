"""The rules by which providers' caches serve prompts, as their documentation has them.

- `openai`, before GPT-5.6: the longest common prefix, from 1,024 tokens on in steps of 128.
- `openai-5.6`: prefixes that end where an earlier prompt ended or had a breakpoint.
- `anthropic`: prefixes written at a `cache_control`, looked for up to 20 blocks before one.
- `deepseek`: whole units: a prompt, one with its answer, what two prompts had in common.

A prompt is compared with all earlier ones that the cache still holds, not just with the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
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
class _Held:
    """Prefixes that a cache holds, each until it was not used for some time."""

    used: dict[bytes, float] = field(default_factory=dict)
    """When each was used last."""

    def has(self, prefix: bytes, at: float, seconds: float) -> bool:
        """True if it is held at that time, so many seconds after its last use."""
        last = self.used.get(prefix)
        return last is not None and at - last <= seconds

    def use(self, prefix: bytes, at: float) -> None:
        """Write a prefix, or use it once more."""
        self.used[prefix] = at


@dataclass(slots=True)
class OpenAIRule:
    """OpenAI before GPT-5.6: automatic, by tokens, without marks."""

    seconds: float = 600.0
    """Idle time after which a prefix is gone: OpenAI says 5 to 10 minutes, up to an hour."""
    prices: Prices = _FREE
    _held: _Held = field(default_factory=_Held, init=False)
    _next: dict[bytes, dict[str, float]] = field(default_factory=dict, init=False)
    """After each prefix, the texts of the parts that came next, with when."""

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        digests = prefixes(prompt.parts)
        whole = _leading(digests, lambda d: self._held.has(d, prompt.at, self.seconds))
        matched = sum(part.tokens for part in prompt.parts[:whole])
        if whole < len(prompt.parts):
            before = digests[whole - 1] if whole else b""
            matched += self._begun(before, prompt.parts[whole], prompt.at)
        self._take_in(prompt, digests)
        read = matched - (matched - _LEAST) % 128 if matched >= _LEAST else 0
        return Served(prompt.tokens, read, 0, 1)

    def _begun(self, before: bytes, part: PromptPart, at: float) -> int:
        """Tokens of a part that begin some part which followed the same prefix."""
        others = [t for t, last in self._next.get(before, {}).items() if at - last <= self.seconds]
        shared = max((_alike(part.text, other) for other in others), default=0)
        return part.tokens * shared // max(1, len(part.text))

    def _take_in(self, prompt: SentPrompt, digests: Sequence[bytes]) -> None:
        for before, digest, part in zip([b"", *digests], digests, prompt.parts, strict=False):
            self._held.use(digest, prompt.at)
            self._next.setdefault(before, {})[part.text] = prompt.at


@dataclass(slots=True)
class BreakpointRule:
    """OpenAI from GPT-5.6: the end of the newest message is a breakpoint, others can be set."""

    seconds: float = 1_800.0
    """Idle time after which a prefix is gone."""
    explicit: bool = False
    """True if the prompts' own breakpoints are sent as well."""
    prices: Prices = _PAID
    _held: _Held = field(default_factory=_Held, init=False)

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        digests, sizes = prefixes(prompt.parts), _sizes(prompt.parts)
        hit = _longest(digests, lambda n: self._held.has(digests[n - 1], prompt.at, self.seconds))
        read = sizes[hit]
        # Four writes a request, and the end of the newest message takes one.
        marks = [*(prompt.breakpoints[:3] if self.explicit else ()), len(digests)]
        for mark in [*marks, *([hit] if hit else [])]:
            if sizes[mark] >= _LEAST:
                self._held.use(digests[mark - 1], prompt.at)
        written = max(0, sizes[marks[-1]] - read) if sizes[marks[-1]] >= _LEAST else 0
        return Served(prompt.tokens, read, written, 1)


@dataclass(slots=True)
class AnthropicRule:
    """Anthropic: up to four `cache_control` marks; without any, nothing is cached."""

    least: int = 1_024
    """Tokens under which nothing is cached; 512 to 4,096 by model."""
    seconds: float = 300.0
    """Idle time after which a prefix is gone: 5 minutes, or an hour if paid for."""
    prices: Prices = _PAID
    look_back: int = 20
    """Blocks before a mark, itself included, at which a prefix is looked for."""
    _held: _Held = field(default_factory=_Held, init=False)

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        digests, sizes = prefixes(prompt.parts), _sizes(prompt.parts)
        marks = prompt.breakpoints[-4:]
        seen = {n for m in marks for n in range(max(1, m - self.look_back + 1), m + 1)}
        hit = max(
            (n for n in seen if self._held.has(digests[n - 1], prompt.at, self.seconds)), default=0
        )
        for mark in [*marks, *([hit] if hit else [])]:
            if sizes[mark] >= self.least:
                self._held.use(digests[mark - 1], prompt.at)
        last = max((sizes[m] for m in marks if sizes[m] >= self.least), default=0)
        return Served(prompt.tokens, sizes[hit], max(0, last - sizes[hit]), 1)


@dataclass(slots=True)
class DeepSeekRule:
    """DeepSeek: whole units on disk; those it writes at fixed distances are left out."""

    seconds: float = 7_200.0
    """Idle time after which a unit is gone: DeepSeek says hours to days."""
    prices: Prices = _FREE
    _held: _Held = field(default_factory=_Held, init=False)
    _seen: _Held = field(default_factory=_Held, init=False)
    """All prefixes of all prompts, for what two have in common."""

    def serve(self, prompt: SentPrompt) -> Served:
        """See `CacheRule.serve`."""
        parts = [*prompt.parts, *([prompt.reply] if prompt.reply else [])]
        digests, sizes = prefixes(parts), _sizes(parts)
        asked = len(prompt.parts)
        hit = _longest(
            digests[:asked], lambda n: self._held.has(digests[n - 1], prompt.at, self.seconds)
        )
        common = _leading(digests[:asked], lambda d: self._seen.has(d, prompt.at, self.seconds))
        for digest in digests:
            self._seen.use(digest, prompt.at)
        for unit in {hit, common, asked, len(digests)} - {0}:
            self._held.use(digests[unit - 1], prompt.at)
        return Served(prompt.tokens, sizes[hit], 0, 1)


def _sizes(parts: Sequence[PromptPart]) -> list[int]:
    """Tokens of the first 0, 1, 2 ... parts."""
    return list(accumulate((part.tokens for part in parts), initial=0))


def _alike(one: str, other: str) -> int:
    """Characters that both texts begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _leading(digests: Sequence[bytes], held: Callable[[bytes], bool]) -> int:
    """The number of leading prefixes that are held."""
    return next((n for n, digest in enumerate(digests) if not held(digest)), len(digests))


def _longest(digests: Sequence[bytes], held: Callable[[int], bool]) -> int:
    """Parts of the longest prefix that is held; 0 for none."""
    return next((n for n in range(len(digests), 0, -1) if held(n)), 0)


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
