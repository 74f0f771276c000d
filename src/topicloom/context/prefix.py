"""Share of a prompt that repeats the beginning of an earlier one: what a provider may cache."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from threading import Lock

from cachetools import LRUCache
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage


@dataclass(frozen=True, slots=True)
class _MeasuredPrompt:
    """A prompt as it is remembered: for each prefix of messages, its digest and its tokens."""

    digests: Sequence[bytes]
    """Of each prefix of messages, shortest first."""
    tokens: Sequence[int]
    """Tokens of each prefix."""


class PrefixMeter:
    """Compares each prompt with the last ones of the same window, message by message.

    Digests are kept, and no message. Windows that were not used for longest are
    forgotten first. May be used from many threads.
    """

    def __init__(self, *, prompts: int = 3, capacity: int = 200_000) -> None:
        self._prompts = prompts
        # One window may be larger than all may be together: the others make room for it.
        self._windows: LRUCache[tuple[str, str], deque[_MeasuredPrompt]] = LRUCache(
            capacity, lambda window: min(capacity, sum(len(p.digests) for p in window))
        )
        self._lock = Lock()

    def measure(
        self,
        session: str,
        window: str,
        messages: Sequence[BaseMessage],
        count: Callable[[BaseMessage], int],
    ) -> float:
        """Compare a prompt with earlier ones of its window, such as `reader:t3`, and remember it.

        The share of the prompt's tokens, 0 to 1, in the longest run of leading messages that an
        earlier one began with; 0 for the first. Tokens of repeated messages are not counted again.
        """
        key = (session, window)
        with self._lock:
            earlier = list(self._windows.get(key, ()))
        digests = list(accumulate(messages, _digest, initial=b""))[1:]
        tokens = max((_share_tokens(digests, prompt) for prompt in earlier), key=len, default=[])
        total = repeated_tokens = tokens[-1] if tokens else 0
        for message in messages[len(tokens) :]:
            total += count(message)
            tokens.append(total)
        with self._lock:
            measured = _MeasuredPrompt(digests, tokens)
            self._windows[key] = deque([*self._windows.get(key, ()), measured], self._prompts)
        return repeated_tokens / total if total else 0.0


def _share_tokens(digests: Sequence[bytes], earlier: _MeasuredPrompt) -> list[int]:
    """Tokens of each prefix that an earlier prompt has too.

    A digest stands for all before it, so the longest of them is found by bisection.
    """
    places = range(min(len(digests), len(earlier.digests)))
    shared = bisect_left(places, True, key=lambda i: digests[i] != earlier.digests[i])
    return list(earlier.tokens[:shared])


def _digest(before: bytes, message: BaseMessage) -> bytes:
    """A digest of what a provider is sent of a message, and of all before it."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    sent = [(c["name"], c["args"], c["id"]) for c in calls]
    said = repr((message.type, message.name, message.content, sent, answers))
    return blake2b(before + said.encode("utf-8", "surrogatepass"), digest_size=16).digest()
