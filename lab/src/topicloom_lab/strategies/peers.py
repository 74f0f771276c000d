"""Memory and summaries as people use them today, through public interfaces, in this process.

Each imports its library when a strategy is made. All get the same embedder and budget; who needs a
model to sum up gets the configured one, or else the extractive stand-in.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Self

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    HumanMessage,
    MessageLikeRepresentation,
    convert_to_messages,
)
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime

from topicloom import Embedder, StoredMessage, count_budget_tokens
from topicloom.lab import LangChainEmbeddings, summarize_by_extracts
from topicloom_app.recordings.conversations import RecordedMessage
from topicloom_lab.asking import AnsweringModel
from topicloom_lab.strategies.base import (
    Context,
    Strategy,
    StrategyOptions,
    line_of,
    quoted_in,
    shown,
    turn_of,
)
from topicloom_lab.strategies.search import quoted


def tokens_of(messages: Iterable[MessageLikeRepresentation]) -> int:
    """Tokens of messages, counted as the budget is."""
    return sum(count_budget_tokens(f"{shown(m)}\n") for m in convert_to_messages(list(messages)))


def summarizing_model(options: StrategyOptions, limit: int) -> BaseChatModel:
    """The configured chat model, or one that extracts so many tokens at most."""
    return options.chat or ExtractiveChatModel.of(options.embedder, limit)


def context_of(
    prompt: Sequence[BaseMessage], heard: Sequence[RecordedMessage], calls: Mapping[str, int]
) -> Context:
    """The context of a prompt that a peer laid out: turns in view, and lines in its summary."""
    ids = {m.id for m in heard}
    in_view = {m.id for m in prompt if m.id in ids}
    text = "\n".join(shown(m) for m in prompt if m.id not in ids)
    whole = in_view | set(quoted_in(text, heard))
    sources = tuple(m.id for m in heard if m.id in whole)
    return Context(tuple(prompt), sources, calls)


class ExtractiveChatModel(AnsweringModel):
    """Answers with the most central lines of its prompt that fit, word for word.

    It makes nothing up and forgets only what does not fit: kinder to what is measured by the
    originals that survive than a model that rephrases.
    """

    @classmethod
    def of(cls, embedder: Embedder, limit: int) -> Self:
        """The model that compares lines by an embedder; its answers have so many tokens at most."""
        summarize = summarize_by_extracts(embedder, count_budget_tokens, limit)

        def extract(prompt: Sequence[BaseMessage], tools: Sequence[Any] = ()) -> str:
            lines = (line for m in prompt for line in shown(m).split("\n") if line.strip())
            return summarize(
                [_Line(seq=n, role="user", text=line, time="") for n, line in enumerate(lines)]
            )

        return cls(answer=extract)


class _Line(StoredMessage):
    """A line: it has its speaker in its text."""

    @property
    def line(self) -> str:
        return self.text


_USER = "user"


class Mem0Search(Strategy):
    """mem0 over its own default store, Qdrant, in a folder; no model is called.

    What it finds fills the budget, best first. Its keyword search needs packages that download
    their models, and stays off, as it does for everybody who installs mem0 alone.
    """

    def __init__(self, options: StrategyOptions) -> None:
        """An empty store in the folder that may be written to."""
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


class SummaryStrategy(Strategy):
    """A library that sums up, before each call of a model, what does not fit any more."""

    def __init__(self, options: StrategyOptions) -> None:
        """The model that sums up; the budget is where that begins."""
        super().__init__()
        self._calls = CallCounter()
        self._room = int(SUMMARY_SHARE * options.budget)
        self._model = summarizing_model(options, self._room)

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        for message in messages:
            self._hear(turn_of(message), answered=message.role == "user")
        super().feed(messages)
        return self._calls.taken()

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        asked = HumanMessage(question, id="question")
        prompt = [m for m in self._lay_out(asked) if m.id != asked.id]
        return context_of(prompt, self._messages, self._calls.taken())

    def _hear(self, turn: BaseMessage, *, answered: bool) -> None:
        """Take a message in, before a call of a model if it is answered."""
        raise NotImplementedError

    def _lay_out(self, asked: BaseMessage) -> Sequence[BaseMessage]:
        """The prompt of a question that does not become part of anything."""
        raise NotImplementedError


class SummarizationMiddlewareStrategy(SummaryStrategy):
    """The middleware's own hook before each model call, on a state that only it changes."""

    def __init__(self, options: StrategyOptions) -> None:
        """The middleware, triggered at the budget."""
        super().__init__(options)
        self._middleware = import_module("langchain.agents.middleware").SummarizationMiddleware(
            model=self._model,
            trigger=("tokens", options.budget),
            keep=("tokens", int(KEPT_SHARE * options.budget)),
            token_counter=tokens_of,
            trim_tokens_to_summarize=None,
            # With a chat model the middleware asks it in its own words.
            summarizer=self._extract if isinstance(self._model, ExtractiveChatModel) else None,
        )
        self._state: list[AnyMessage] = []

    def _hear(self, turn: BaseMessage, *, answered: bool) -> None:
        self._state = _added(self._state, [turn])
        if answered:
            self._state = self._before_model(self._state)

    def _lay_out(self, asked: BaseMessage) -> Sequence[BaseMessage]:
        return self._before_model(_added(self._state, [asked]))

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
        return self._model.answer(messages, ())


def _added(messages: Sequence[AnyMessage], more: Sequence[BaseMessage]) -> list[AnyMessage]:
    given: Any = list(messages), list(more)
    merged: Any = add_messages(*given)
    return list(merged)


_HEADING = 16
"""Tokens of the words that the node puts before a summary, about."""


class SummarizationNodeStrategy(SummaryStrategy):
    """The node, invoked before each model call with the whole history, as documented."""

    def __init__(self, options: StrategyOptions) -> None:
        """The node, with the budget as its window."""
        super().__init__(options)
        self._node = import_module("langmem.short_term").SummarizationNode(
            model=self._model.with_config(callbacks=[self._calls]),
            max_tokens=options.budget,
            # The node counts what is new apart from the summary: both have to fit.
            max_tokens_before_summary=options.budget - self._room - _HEADING,
            max_summary_tokens=self._room,
            token_counter=tokens_of,
        )
        self._turns: list[BaseMessage] = []
        self._memory: dict[str, Any] = {}

    def _hear(self, turn: BaseMessage, *, answered: bool) -> None:
        self._turns.append(turn)
        if answered:
            self._memory = self._invoked(self._turns).get("context", self._memory)

    def _lay_out(self, asked: BaseMessage) -> Sequence[BaseMessage]:
        prompt: list[BaseMessage] = self._invoked([*self._turns, asked])["summarized_messages"]
        return prompt

    def _invoked(self, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        given = {"messages": list(messages), "context": self._memory}
        found: dict[str, Any] = self._node.invoke(given)
        return found
