"""Measures what a provider's cache would have served of a sequence of prompts, and what it saves.

A rule plays one provider's cache: prompts go in as they were sent, and for each it says how much
was read from the cache and how much was written to it. A prompt is compared with all earlier ones
that the cache still holds. The rules are as documentation has them:

- `openai`, before GPT-5.6: the longest common prefix, from 1,024 tokens on in steps of 128.
- `openai-5.6`: prefixes that end where an earlier prompt ended or had a breakpoint.
- `anthropic`: prefixes written at a `cache_control`, looked for up to 20 blocks before one.
- `deepseek`: whole units: a prompt, one with its answer, what two prompts had in common.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import accumulate, takewhile
from operator import add
from types import MappingProxyType
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt: all tools, the system message, a message."""

    text: str
    """All that is sent of it; two parts are the same if their texts are."""
    tokens: int


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A prompt as it was sent."""

    window: str
    """The window that it fills, such as `main` or `reader:t3`."""
    at: float
    """When, in seconds from any moment."""
    parts: tuple[PromptPart, ...]
    """In the provider's order: tools, system, messages."""
    breakpoints: tuple[int, ...] = ()
    """Explicit breakpoints, each by the number of leading parts before it, ascending."""
    reply: PromptPart | None = None
    """The model's answer, as it would be sent back; None if it never is."""
    messages: tuple[BaseMessage, ...] = ()
    """What was sent, to be sent again."""
    tools: tuple[Any, ...] = ()
    """The tools that were bound, likewise."""

    @property
    def tokens(self) -> int:
        """Tokens of all parts."""
        return sum(part.tokens for part in self.parts)


@dataclass(frozen=True, slots=True)
class Served:
    """Tokens of some prompts that a cache read and wrote."""

    tokens: int = 0
    """Tokens of the prompts."""
    read: int = 0
    """Of those, read from the cache."""
    written: int = 0
    """Of those, written to it at a price."""
    prompts: int = 0

    def __add__(self, other: Served) -> Served:
        return Served(*map(add, astuple(self), astuple(other)))

    @property
    def share(self) -> float:
        """Share of the tokens that was read from the cache; 0 of nothing."""
        return self.read / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of input tokens."""

    read: float
    """A token read from the cache, as a multiple of a plain one."""
    write: float = 1.0
    """A token written to the cache, likewise."""
    million: float = 1.0
    """A million plain tokens, in whatever currency."""

    def cost(self, served: Served) -> float:
        """The cost of prompts, in the currency of `million`."""
        plain = served.tokens - served.read - served.written
        weighted = plain + self.read * served.read + self.write * served.written
        return weighted * self.million / 1_000_000

    def relative(self, served: Served) -> float:
        """The cost of prompts as a share of that without a cache; 1 for no prompts."""
        plain = self.million * served.tokens / 1_000_000
        return self.cost(served) / plain if plain else 1.0


@dataclass(slots=True)
class CacheRule:
    """The cache of one provider for one model, empty at first."""

    seconds: float
    """Idle time after which a prefix is gone."""
    prices: Prices
    """The provider's prices of reads and writes, as multiples."""
    _used: dict[bytes, float] = field(default_factory=dict, init=False)
    """When each prefix was written, or used last."""

    def serve(self, prompt: SentPrompt) -> Served:
        """Read what it holds of a prompt, and take the prompt in."""
        raise NotImplementedError

    def _is_held(self, prefix: bytes, at: float) -> bool:
        return at - self._used.get(prefix, -math.inf) <= self.seconds

    def _find_longest(self, prefixes: Sequence[bytes], at: float) -> int:
        """Parts of the longest prefix that is held; 0 for none."""
        return max((n for n, p in enumerate(prefixes, start=1) if self._is_held(p, at)), default=0)


def measure(
    prompts: Iterable[SentPrompt], rule: CacheRule, group: Callable[[SentPrompt], str]
) -> dict[str, Served]:
    """Send prompts past a cache, in the order of their times.

    Args:
        prompts: All prompts of one model.
        rule: The cache; it keeps what it took in.
        group: Names what a prompt counts for.

    Returns:
        What was served, by group.
    """
    found: dict[str, Served] = {}
    for prompt in sorted(prompts, key=lambda p: p.at):
        name = group(prompt)
        found[name] = found.get(name, Served()) + rule.serve(prompt)
    return found


def parts_of(
    messages: Sequence[BaseMessage], count: Callable[[BaseMessage], int]
) -> tuple[PromptPart, ...]:
    """The parts of a prompt's messages, by a function that counts the tokens of one."""
    return tuple(PromptPart(text_sent(m), count(m)) for m in messages)


def text_sent(message: BaseMessage) -> str:
    """All that a provider is sent of a message."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    sent = "".join(f"\n{c['name']} {c['args']!r} {c['id']}" for c in calls)
    said = message.content if isinstance(message.content, str) else repr(message.content)
    return f"{message.type} {message.name or ''} {answers}\n{said}{sent}"


def prefixes(parts: Sequence[PromptPart]) -> list[bytes]:
    """For each run of leading parts, shortest first, a digest that stands for all of it."""
    digests, running = list[bytes](), b""
    for part in parts:
        said = part.text.encode("utf-8", "surrogatepass")
        running = blake2b(running + said, digest_size=16).digest()
        digests.append(running)
    return digests


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
