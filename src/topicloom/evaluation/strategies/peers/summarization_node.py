"""LangMem's `SummarizationNode`: a running summary beside the full history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage

from topicloom.evaluation.conversations import RecordedMessage
from topicloom.evaluation.strategies.adapters import (
    context_of,
    summarizing_model,
    tokens_of,
    turn_of,
)
from topicloom.evaluation.strategies.base import Context, Desk, Listener

SUMMARY_SHARE = 0.25
"""Of the budget: what a summary may take."""
_HEADING = 16
"""Tokens of the words that the node puts before a summary, about."""


class SummarizationNodeStrategy(Listener):
    """The node, invoked before each model call with the whole history, as documented."""

    def __init__(self, desk: Desk) -> None:
        """Args:
        desk: The budget is the node's window.
        """
        super().__init__()
        room = int(SUMMARY_SHARE * desk.budget)
        self._calls = CallCounter()
        model = summarizing_model(desk, room)
        self._node = import_module("langmem.short_term").SummarizationNode(
            model=model.with_config(callbacks=[self._calls]),
            max_tokens=desk.budget,
            # The node counts what is new apart from the summary: both have to fit.
            max_tokens_before_summary=desk.budget - room - _HEADING,
            max_summary_tokens=room,
            token_counter=tokens_of,
        )
        self._turns: list[BaseMessage] = []
        self._memory: dict[str, Any] = {}

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        super().feed(messages)
        for message in messages:
            self._turns.append(turn_of(message))
            if message.role == "user":
                self._memory = self._invoked(self._turns).get("context", self._memory)
        return self._calls.taken()

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        asked = HumanMessage(question, id="question")
        prompt = self._invoked([*self._turns, asked])["summarized_messages"]
        laid_out = [m for m in prompt if m.id != asked.id]
        return context_of(laid_out, self._messages, self._calls.taken())

    def _invoked(self, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        found: dict[str, Any] = self._node.invoke(
            {"messages": list(messages), "context": self._memory}
        )
        return found


class CallCounter(BaseCallbackHandler):
    """Counts calls of a chat model."""

    def __init__(self) -> None:
        self._calls = 0

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Count one."""
        self._calls += 1

    def taken(self) -> Mapping[str, int]:
        """Calls since this was asked last, by role."""
        calls, self._calls = self._calls, 0
        return {"summary": calls} if calls else {}
