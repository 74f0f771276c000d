"""Measures what a provider's cache would have served of a sequence of prompts, and what it saves.

A rule plays one provider's cache: prompts go in as they were sent, and for each it says how much
was read from the cache and how much was written to it. The rules are in `rules.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from hashlib import blake2b
from operator import add
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
