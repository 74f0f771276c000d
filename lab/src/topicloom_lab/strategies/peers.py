"""Memory and summaries as people use them today, through public interfaces, in this process.

Each imports its library when a strategy is made. All get the same embedder and budget; who needs a
model to sum up gets the configured one, or else the extractive stand-in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from topicloom.index.encoders import LangChainEmbeddings
from topicloom.recordings.conversations import RecordedMessage
from topicloom_lab.strategies.adapters import (
    ExtractiveChatModel,
    context_of,
    summarizing_model,
    tokens_of,
)
from topicloom_lab.strategies.base import Context, Strategy, StrategyOptions, line_of, turn_of
from topicloom_lab.strategies.search import quoted

_USER = "user"


class Mem0Search(Strategy):
    """mem0 over its own default store, Qdrant, in a folder; no model is called.

    What it finds fills the budget, best first. Its keyword search needs packages that download
    their models, and stays off, as it does for everybody who installs mem0 alone.
    """

    def __init__(self, options: StrategyOptions) -> None:
        """Args:
        options: Says where mem0 may write.
        """
        super().__init__()
        # Read when mem0 is imported: nothing of a measurement shall go over the network.
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ.setdefault("MEM0_DIR", str(options.folder / "home"))
        model = ExtractiveChatModel.of(options.embedder, options.budget)
        self._memory: Any = import_module("mem0").Memory.from_config(
            {
                "embedder": {
                    "provider": "langchain",
                    "config": {"model": LangChainEmbeddings(options.embedder)},
                },
                "llm": {"provider": "langchain", "config": {"model": model}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(options.folder / "qdrant"),
                        "embedding_model_dims": options.embedder.dimension,
                        "on_disk": True,
                    },
                },
                "history_db_path": str(options.folder / "history.db"),
            }
        )

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        for place, message in enumerate(messages, start=len(self._messages)):
            said = {"role": "user", "content": line_of(message)}
            self._memory.add([said], user_id=_USER, metadata={"place": place}, infer=False)
        return super().feed(messages)

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        found = self._memory.search(
            question, filters={"user_id": _USER}, top_k=len(self._messages) or 1, threshold=0.0
        )["results"]
        places = (int(item["metadata"]["place"]) for item in found)
        return quoted(self._messages, places, budget)

    def close(self) -> None:
        """See `Strategy.close`."""
        self._memory.close()
        self._memory.vector_store.client.close()


SUMMARY_SHARE, KEPT_SHARE = 0.25, 0.5
"""Of the budget: what a summary may take, and what stays word for word when one is written."""


class SummarizationMiddlewareStrategy(Strategy):
    """The middleware's own hook before each model call, on a state that only it changes."""

    def __init__(self, options: StrategyOptions) -> None:
        """Args:
        options: The budget is where the middleware is triggered.
        """
        super().__init__()
        middleware = import_module("langchain.agents.middleware").SummarizationMiddleware
        model = summarizing_model(options, int(SUMMARY_SHARE * options.budget))
        self._model = model
        self._middleware = middleware(
            model=model,
            trigger=("tokens", options.budget),
            keep=("tokens", int(KEPT_SHARE * options.budget)),
            token_counter=tokens_of,
            trim_tokens_to_summarize=None,
            # With a chat model the middleware asks it in its own words.
            summarizer=self._extract if isinstance(model, ExtractiveChatModel) else None,
        )
        self._state: list[AnyMessage] = []
        self._calls = CallCounter()

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        super().feed(messages)
        for message in messages:
            self._state = _added(self._state, [turn_of(message)])
            if message.role == "user":
                self._state = self._before_model(self._state)
        return self._calls.taken()

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        asked = HumanMessage(question, id="question")
        prompt = self._before_model(_added(self._state, [asked]))
        laid_out = [m for m in prompt if m.id != asked.id]
        return context_of(laid_out, self._messages, self._calls.taken())

    def _before_model(self, messages: list[AnyMessage]) -> list[AnyMessage]:
        state: dict[str, Any] = {"messages": messages}
        update = self._middleware.before_model(state, Runtime())
        if update is None:
            return messages
        if not isinstance(self._model, ExtractiveChatModel):
            self._calls.on_chat_model_start()
        return _added(messages, update["messages"])

    def _extract(self, messages: list[AnyMessage]) -> str:
        self._calls.on_chat_model_start()
        assert isinstance(self._model, ExtractiveChatModel)
        return self._model.extract(messages)


def _added(messages: list[AnyMessage], more: Sequence[BaseMessage]) -> list[AnyMessage]:
    left: Any = list(messages)
    right: Any = list(more)
    merged: Any = add_messages(left, right)
    return list(merged)


_HEADING = 16
"""Tokens of the words that the node puts before a summary, about."""


class SummarizationNodeStrategy(Strategy):
    """The node, invoked before each model call with the whole history, as documented."""

    def __init__(self, options: StrategyOptions) -> None:
        """Args:
        options: The budget is the node's window.
        """
        super().__init__()
        room = int(SUMMARY_SHARE * options.budget)
        self._calls = CallCounter()
        model = summarizing_model(options, room)
        self._node = import_module("langmem.short_term").SummarizationNode(
            model=model.with_config(callbacks=[self._calls]),
            max_tokens=options.budget,
            # The node counts what is new apart from the summary: both have to fit.
            max_tokens_before_summary=options.budget - room - _HEADING,
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
