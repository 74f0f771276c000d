"""Adapters for peers: our embedder, token count and an extracting model in their forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, MessageLikeRepresentation, convert_to_messages

from topicloom.context.tokens import count_budget_tokens
from topicloom.index.embedder import Embedder
from topicloom.recordings.conversations import RecordedMessage
from topicloom.roles.brief import summarize_by_extracts
from topicloom.state.stored_message import StoredMessage
from topicloom_lab.asking import AnsweringModel
from topicloom_lab.strategies.base import Context, StrategyOptions, quoted_in, shown


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
