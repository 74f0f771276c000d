"""mem0 with `infer=False`: each message a memory, found by its own search."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from topicloom.evaluation.conversations import RecordedMessage
from topicloom.evaluation.strategies.adapters import LangChainEmbeddings
from topicloom.evaluation.strategies.base import Context, Desk, Listener, line_of
from topicloom.evaluation.strategies.extracts import ExtractiveChatModel
from topicloom.evaluation.strategies.search import quoted

_USER = "user"


class Mem0Search(Listener):
    """mem0 over its own default store, Qdrant, in a folder; no model is called.

    What it finds fills the budget, best first. Its keyword search needs packages that download
    their models, and stays off, as it does for everybody who installs mem0 alone.
    """

    def __init__(self, desk: Desk) -> None:
        """Args:
        desk: Says where mem0 may write.
        """
        super().__init__()
        # Read when mem0 is imported: nothing of a measurement shall go over the network.
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ.setdefault("MEM0_DIR", str(desk.folder / "home"))
        model = ExtractiveChatModel.of(desk.embedder, desk.budget)
        self._memory: Any = import_module("mem0").Memory.from_config(
            {
                "embedder": {
                    "provider": "langchain",
                    "config": {"model": LangChainEmbeddings(desk.embedder)},
                },
                "llm": {"provider": "langchain", "config": {"model": model}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(desk.folder / "qdrant"),
                        "embedding_model_dims": desk.embedder.dimension,
                        "on_disk": True,
                    },
                },
                "history_db_path": str(desk.folder / "history.db"),
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
