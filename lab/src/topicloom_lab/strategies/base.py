"""Context strategies: each hears a conversation and lays out the prompt of a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from topicloom import Embedder, StoredMessage, count_budget_tokens
from topicloom.lab import Language, get_text, to_stored_message
from topicloom_app.recordings.conversations import RecordedMessage
from topicloom_app.recordings.replay import as_message
from topicloom_lab.asking import BudgetCounter

COUNTER = BudgetCounter()
"""Counts what a context costs; the same for all strategies."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an answer: everything of the prompt but instructions and question."""

    messages: tuple[BaseMessage, ...]
    """The prompt's messages; what is no turn of the conversation stands in system messages."""
    sources: tuple[str, ...]
    """Ids, in the recording, of the originals whose whole text is meant to stand in it."""
    calls: Mapping[str, int] = field(default_factory=dict)
    """Calls of models by role, for this question."""

    @property
    def text(self) -> str:
        """All of it, as one text."""
        return "\n".join(map(shown, self.messages))

    @property
    def tokens(self) -> int:
        """Tokens: a CJK character or four others is one; a turn counts as `speaker: text`."""
        return count_budget_tokens(self.text)


class Strategy:
    """One conversation under one strategy. It is made, fed in order, and asked at any place.

    One that lays out another memory for each budget while it listens has `by_budget = True`.
    """

    def __init__(self, options: StrategyOptions | None = None) -> None:
        """An empty memory; the strategies that ship take of the options what they need."""
        self._messages: list[RecordedMessage] = []

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """Hear the next messages, none without text; the calls of models by role, here none."""
        self._messages += messages
        return {}

    def context(self, question: str, budget: int) -> Context:
        """The context of a question that is asked now and does not become part of anything.

        It may have as many tokens as the budget.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Let go of files, if there are any."""


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """The options of a strategy."""

    embedder: Embedder
    """Makes vectors; the same for all strategies."""
    folder: Path
    """An empty folder that it may write to."""
    budget: int
    """Tokens that it will be asked for, at most: what it sums up has to fit into that."""
    language: Language = "en"
    """Of the conversation."""
    chat: BaseChatModel | None = None
    """Writes summaries; None for extracts, made with the embedder."""


def line_of(message: RecordedMessage) -> str:
    """`speaker: text`, which is what is searched, shown and counted."""
    return f"{message.speaker or message.role}: {message.text}"


def cost_of(message: RecordedMessage) -> int:
    """Tokens of a message in a context.

    A line that ends in a newline never costs less than its share of the joined text.
    """
    return _count(f"{line_of(message)}\n")


@lru_cache(1 << 16)
def _count(line: str) -> int:
    """Tokens of a line: each question of a long conversation asks for those of all of them."""
    return count_budget_tokens(line)


def stored_of(messages: Sequence[RecordedMessage], first: int = 1) -> list[StoredMessage]:
    """Messages as a session stores them, numbered from the first on, their ids as sources."""
    numbered = enumerate(messages, start=first)
    return [to_stored_message(as_message(m), seq=n, time="") for n, m in numbered]


def turn_of(message: RecordedMessage) -> BaseMessage:
    """A recorded message with the name of its speaker, which is shown beside the text."""
    turn = as_message(message)
    return turn if turn.name else turn.model_copy(update={"name": message.role})


def shown(message: BaseMessage) -> str:
    """A message of a prompt as text: `speaker: text`, or the text alone without a speaker."""
    text = get_text(message)
    return text if message.type == "system" else f"{message.name or message.type}: {text}"


def quoted_in(text: str, messages: Sequence[RecordedMessage]) -> tuple[str, ...]:
    """Ids of messages that stand in a text as whole lines."""
    framed = f"\n{text}\n"
    return tuple(m.id for m in messages if f"\n{line_of(m)}\n" in framed)
