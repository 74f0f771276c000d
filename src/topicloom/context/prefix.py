"""How much of a prompt repeats the beginning of an earlier one: what a provider's cache can pay."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

_WindowKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A prompt as it is remembered: for each prefix of messages, its digest and its tokens."""

    tokens: dict[bytes, int]
    """Tokens of the prefix, by digest; shortest first."""


class PrefixMeter:
    """Compares each prompt with the last ones of the same window, message by message.

    Only digests are kept. Windows that were not used for longest are forgotten first. May be
    used from many threads.
    """

    def __init__(self, *, prompts: int = 3, capacity: int = 200_000) -> None:
        """Args:
        prompts: Earlier prompts of a window to compare with.
        capacity: Messages remembered over all windows.
        """
        self._prompts = prompts
        self._capacity = capacity
        self._size = 0
        self._windows: OrderedDict[_WindowKey, deque[_Prompt]] = OrderedDict()
        self._lock = Lock()

    def share(
        self,
        session: str,
        window: str,
        messages: Sequence[BaseMessage],
        count: Callable[[BaseMessage], int],
    ) -> float:
        """Compare a prompt with earlier ones of its window, and remember it.

        Args:
            session: The session.
            window: Name of the window in it, such as `main` or `reader:t3`.
            messages: The prompt.
            count: Tokens of a message; called for messages that are not repeated only.

        Returns:
            Share of the prompt's tokens, 0 to 1, in the longest run of leading messages that an
            earlier prompt began with; 0 for the first prompt of a window.
        """
        key = (session, window)
        with self._lock:
            earlier = list(self._windows.get(key, ()))
        digests = _prefix_digests(messages)
        repeated, known = _longest(digests, earlier)
        tokens = dict(known)
        total = repeated_tokens = tokens[digests[repeated - 1]] if repeated else 0
        for digest, message in zip(digests[repeated:], messages[repeated:], strict=True):
            total += count(message)
            tokens[digest] = total
        with self._lock:
            self._remember(key, _Prompt(tokens))
        return repeated_tokens / total if total else 0.0

    def _remember(self, key: _WindowKey, prompt: _Prompt) -> None:
        window = self._windows.setdefault(key, deque())
        self._windows.move_to_end(key)
        window.append(prompt)
        self._size += len(prompt.tokens)
        if len(window) > self._prompts:
            self._size -= len(window.popleft().tokens)
        while self._size > self._capacity and len(self._windows) > 1:
            _, forgotten = self._windows.popitem(last=False)
            self._size -= sum(len(p.tokens) for p in forgotten)


def _longest(digests: Sequence[bytes], earlier: Sequence[_Prompt]) -> tuple[int, dict[bytes, int]]:
    """Length of the longest repeated prefix, and the tokens of its prefixes."""
    best, known = 0, dict[bytes, int]()
    for prompt in earlier:
        length = next(
            (i for i, digest in enumerate(digests) if digest not in prompt.tokens), len(digests)
        )
        if length > best:
            best, known = length, {d: prompt.tokens[d] for d in digests[:length]}
    return best, known


def _prefix_digests(messages: Sequence[BaseMessage]) -> list[bytes]:
    """For each message, a digest of it and of all before it."""
    running, digests = b"", list[bytes]()
    for message in messages:
        said = repr(_content(message)).encode("utf-8", "surrogatepass")
        running = blake2b(running + said, digest_size=16).digest()
        digests.append(running)
    return digests


def _content(message: BaseMessage) -> tuple[object, ...]:
    """What a provider is sent of a message."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    sent = [(c["name"], c["args"], c["id"]) for c in calls]
    return (message.type, message.name, message.content, sent, answers)
