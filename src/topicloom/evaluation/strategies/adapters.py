"""What peers are given: our embedder and token count in their forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, MessageLikeRepresentation, convert_to_messages

from topicloom.context.tokens import budget_tokens
from topicloom.evaluation.conversations import RecordedMessage
from topicloom.evaluation.replay import as_message
from topicloom.evaluation.strategies.base import Context, Desk, quoted_in, shown
from topicloom.evaluation.strategies.extracts import ExtractiveChatModel
from topicloom.index.embedder import Embedder


class LangChainEmbeddings(Embeddings):
    """An embedder as LangChain has them."""

    def __init__(self, embedder: Embedder) -> None:
        """Args:
        embedder: Makes the vectors.
        """
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed each text on its own."""
        found: list[list[float]] = self._embedder.embed(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """Embed one text."""
        return self.embed_documents([text])[0]


def tokens_of(messages: Iterable[MessageLikeRepresentation]) -> int:
    """Tokens of messages, counted as the budget is."""
    return sum(budget_tokens(f"{shown(m)}\n") for m in convert_to_messages(list(messages)))


def summarizing_model(desk: Desk, limit: int) -> BaseChatModel:
    """The configured chat model, or the extractive one.

    Args:
        desk: Says which model there is.
        limit: Tokens of an extract.
    """
    return desk.chat or ExtractiveChatModel.of(desk.embedder, limit)


def turn_of(message: RecordedMessage) -> BaseMessage:
    """A recorded message with the name of its speaker, which peers show beside the text."""
    turn = as_message(message)
    return turn if turn.name else turn.model_copy(update={"name": message.role})


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
    told = "\n".join(shown(m) for m in prompt if m.id not in ids)
    whole = in_view | set(quoted_in(told, heard))
    sources = tuple(m.id for m in heard if m.id in whole)
    return Context(tuple(prompt), sources, calls)
