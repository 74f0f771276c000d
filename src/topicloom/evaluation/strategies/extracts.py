"""A chat model that only extracts: it stands in where a peer wants a model to sum up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from topicloom.context.segments import Summarize
from topicloom.context.tokens import budget_tokens
from topicloom.evaluation.strategies.base import shown
from topicloom.index.embedder import Embedder
from topicloom.roles.brief import summarize_by_extracts
from topicloom.state.records import Record


class ExtractiveChatModel(BaseChatModel):
    """Answers with the most central lines of its prompt that fit, word for word.

    It makes nothing up and forgets only what does not fit: kinder to whoever is measured by the
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
        return cls(summarize=summarize_by_extracts(embedder, budget_tokens, limit))

    @property
    def _llm_type(self) -> str:
        return "extractive"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.extract(messages)))])

    def extract(self, messages: Sequence[BaseMessage]) -> str:
        """The most central lines of some messages, in their order."""
        lines = [line for m in messages for line in shown(m).split("\n") if line.strip()]
        records = [_Line(seq=n, role="user", text=line, time="") for n, line in enumerate(lines)]
        return self.summarize(records)


class _Line(Record):
    """A line: it has its speaker in its text."""

    @property
    def line(self) -> str:
        return self.text
