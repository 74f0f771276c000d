"""LangChain's `SummarizationMiddleware`: what is old is replaced by a running summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from topicloom.evaluation.conversations import RecordedMessage
from topicloom.evaluation.strategies.adapters import (
    context_of,
    summarizing_model,
    tokens_of,
    turn_of,
)
from topicloom.evaluation.strategies.base import Context, Desk, Listener
from topicloom.evaluation.strategies.extracts import ExtractiveChatModel

SUMMARY_SHARE, KEPT_SHARE = 0.25, 0.5
"""Of the budget: what a summary may take, and what stays word for word when one is written."""


class SummarizationMiddlewareStrategy(Listener):
    """The middleware's own hook before each model call, on a state that only it changes."""

    def __init__(self, desk: Desk) -> None:
        """Args:
        desk: The budget is where the middleware is triggered.
        """
        super().__init__()
        middleware = import_module("langchain.agents.middleware").SummarizationMiddleware
        model = summarizing_model(desk, int(SUMMARY_SHARE * desk.budget))
        self._model = model
        self._middleware = middleware(
            model=model,
            trigger=("tokens", desk.budget),
            keep=("tokens", int(KEPT_SHARE * desk.budget)),
            token_counter=tokens_of,
            trim_tokens_to_summarize=None,
            # With a chat model the middleware asks it in its own words.
            summarizer=self._extract if isinstance(model, ExtractiveChatModel) else None,
        )
        self._state: list[AnyMessage] = []
        self._calls = 0

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        super().feed(messages)
        for message in messages:
            self._state = _added(self._state, [turn_of(message)])
            if message.role == "user":
                self._state = self._before_model(self._state)
        return self._taken()

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        asked = HumanMessage(question, id="question")
        prompt = self._before_model(_added(self._state, [asked]))
        laid_out = [m for m in prompt if m.id != asked.id]
        return context_of(laid_out, self._messages, self._taken())

    def _taken(self) -> Mapping[str, int]:
        """Calls of the summarizing model since this was asked last."""
        calls, self._calls = self._calls, 0
        return {"summary": calls} if calls else {}

    def _before_model(self, messages: list[AnyMessage]) -> list[AnyMessage]:
        state: dict[str, Any] = {"messages": messages}
        update = self._middleware.before_model(state, Runtime())
        if update is None:
            return messages
        self._calls += not isinstance(self._model, ExtractiveChatModel)
        return _added(messages, update["messages"])

    def _extract(self, messages: list[AnyMessage]) -> str:
        self._calls += 1
        assert isinstance(self._model, ExtractiveChatModel)
        return self._model.extract(messages)


def _added(messages: list[AnyMessage], more: Sequence[BaseMessage]) -> list[AnyMessage]:
    left: Any = list(messages)
    right: Any = list(more)
    merged: Any = add_messages(left, right)
    return list(merged)
