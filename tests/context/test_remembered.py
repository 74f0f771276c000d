"""Remembered counts: the same figures, counted once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from topicloom.context.token_count import EstimatingCounter, TokenCounter
from topicloom.context.tokens import CachedTokenCounter

O200K = EstimatingCounter("o200k")
COUNTER: TokenCounter = CachedTokenCounter(O200K)


class Watched(EstimatingCounter):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__("o200k")
        self.asked: list[str] = []

    def text(self, text: str) -> int:
        self.asked.append(text)
        return super().text(text)


@pytest.mark.slow
@given(text=st.text(), times=st.integers(1, 60))
def test_counts_are_those_of_the_counter(text: str, times: int) -> None:
    said: list[BaseMessage] = [HumanMessage(text * times, name="Ada"), AIMessage(text)]
    for _ in range(2):
        assert COUNTER.text(text * times) == O200K.text(text * times)
        assert list(map(COUNTER.message, said)) == list(map(O200K.message, said))


def test_tools_are_counted_by_the_counter() -> None:
    tool: dict[str, Any] = {"name": "find", "description": "Find.", "parameters": {}}
    assert COUNTER.tools([tool]) == O200K.tools([tool])


def test_a_long_text_is_counted_once_and_the_longest_unused_forgotten() -> None:
    watched = Watched()
    counter = CachedTokenCounter(watched, capacity=2)
    a, b, c = ("a" * 300, "b" * 300, "c" * 300)
    for text in (a, b, a, c, a, b):
        counter.text(text)
    assert watched.asked == [a, b, c, b]
