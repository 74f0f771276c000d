"""A LangGraph store with semantic search: each message an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langgraph.store.memory import InMemoryStore

from topicloom.evaluation.conversations import RecordedMessage
from topicloom.evaluation.strategies.adapters import LangChainEmbeddings
from topicloom.evaluation.strategies.base import Context, Desk, Listener, line_of
from topicloom.evaluation.strategies.search import quoted

_NAMESPACE = ("messages",)


class StoreSearch(Listener):
    """`InMemoryStore` with an index; what it finds fills the budget, best first."""

    def __init__(self, desk: Desk) -> None:
        """Args:
        desk: Its embedder makes the index.
        """
        super().__init__()
        embeddings = LangChainEmbeddings(desk.embedder)
        self._store = InMemoryStore(
            index={"dims": desk.embedder.dimension, "embed": embeddings, "fields": ["text"]}
        )

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        for place, message in enumerate(messages, start=len(self._messages)):
            self._store.put(_NAMESPACE, str(place), {"text": line_of(message)})
        return super().feed(messages)

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        found = self._store.search(_NAMESPACE, query=question, limit=len(self._messages) or 1)
        return quoted(self._messages, (int(item.key) for item in found), budget)
