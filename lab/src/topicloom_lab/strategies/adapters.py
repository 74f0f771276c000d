"""Adapters for peers: our embedder, token count and an extracting model in their forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from langchain_core.language_models import BaseChatModel, SimpleChatModel
from langchain_core.messages import BaseMessage, MessageLikeRepresentation, convert_to_messages

from topicloom.context.segments import Summarize
from topicloom.context.tokens import count_budget_tokens
from topicloom.index.embedder import Embedder
from topicloom.recordings.conversations import RecordedMessage
from topicloom.roles.brief import summarize_by_extracts
from topicloom.state.stored_message import StoredMessage
from topicloom_lab.strategies.base import Context, StrategyOptions, quoted_in, shown


def tokens_of(messages: Iterable[MessageLikeRepresentation]) -> int:
    """Tokens of messages, counted as the budget is."""
    return sum(count_budget_tokens(f"{shown(m)}\n") for m in convert_to_messages(list(messages)))


def summarizing_model(options: StrategyOptions, limit: int) -> BaseChatModel:
    """The configured chat model, or the summarize_by_extracts one.

    Args:
        options: Says which model there is.
        limit: Tokens of an extract.
    """
    return options.chat or ExtractiveChatModel.of(options.embedder, limit)


def context_of(
    prompt: Sequence[BaseMessage], heard: Sequence[RecordedMessage], calls: Mapping[str, int]
) -> Context:
    """The context of a prompt that a peer laid out: turns in view, and lines in its summary.

    Args:
        prompt: The prompt's messages, without the question.
        heard: The conversation so far.
        calls: Calls of models by role, for this question.
    """
    ids = {m.id for m in heard}
    in_view = {m.id for m in prompt if m.id in ids}
    text = "\n".join(shown(m) for m in prompt if m.id not in ids)
    whole = in_view | set(quoted_in(text, heard))
    sources = tuple(m.id for m in heard if m.id in whole)
    return Context(tuple(prompt), sources, calls)


class ExtractiveChatModel(SimpleChatModel):
    """Answers with the most central lines of its prompt that fit, word for word.

    It makes nothing up and forgets only what does not fit: kinder to what is measured by the
    originals that survive than a model that rephrases.
    """

    summarize: Summarize
    """Chooses lines."""

    @classmethod
    def of(cls, embedder: Embedder, limit: int) -> Self:
        """The model.

        Args:
            embedder: Compares lines.
            limit: Tokens of an answer.
        """
        return cls(summarize=summarize_by_extracts(embedder, count_budget_tokens, limit))

    @property
    def _llm_type(self) -> str:
        return "extractive"

    def _call(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: object = None,
        **kwargs: Any,
    ) -> str:
        return self.extract(messages)

    def extract(self, messages: Sequence[BaseMessage]) -> str:
        """The most central lines of some messages, in their order."""
        lines = [line for m in messages for line in shown(m).split("\n") if line.strip()]
        stored = [_Line(seq=n, role="user", text=line, time="") for n, line in enumerate(lines)]
        return self.summarize(stored)


class _Line(StoredMessage):
    """A line: it has its speaker in its text."""

    @property
    def line(self) -> str:
        return self.text
