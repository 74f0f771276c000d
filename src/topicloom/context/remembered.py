"""Counting a text once: a topic window is measured at every turn, and hardly changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from threading import Lock

from langchain_core.messages import BaseMessage

from topicloom.context.token_messages import ToolLike, message_tokens
from topicloom.context.tokens import TokenCounter

_SHORT = 200
"""Characters up to which counting is as cheap as remembering."""


class RememberedCounts:
    """A token counter that remembers what another one said of longer texts.

    Only digests are kept, the longest unused are forgotten first. Safe in several threads.
    """

    def __init__(self, counter: TokenCounter, *, capacity: int = 50_000) -> None:
        """Args:
        counter: Does the counting.
        capacity: Texts remembered.
        """
        self._counter = counter
        self._capacity = capacity
        self._known: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()

    def text(self, text: str) -> int:
        """Count the tokens of a text."""
        if len(text) <= _SHORT:
            return self._counter.text(text)
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        with self._lock:
            known = self._known.get(digest)
            if known is not None:
                self._known.move_to_end(digest)
                return known
        tokens = self._counter.text(text)
        with self._lock:
            self._known[digest] = tokens
            if len(self._known) > self._capacity:
                self._known.popitem(last=False)
        return tokens

    def message(self, message: BaseMessage) -> int:
        """Count a message as sent: frame, name, content blocks and tool calls."""
        return message_tokens(message, self.text)

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """Count the JSON schemas of bound tools."""
        return self._counter.tools(tools)
