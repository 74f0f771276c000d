"""The cost of a turn of a replay: CPU time, and that of its split."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

SPLIT = "split"
"""Name of the node that moves messages into topics."""


@dataclass(frozen=True, slots=True)
class FedTurn:
    """A turn of a recording that a session has heard."""

    messages: int
    """Messages that were new in it, the reply included."""
    cpu_seconds: float
    """CPU time of the process until the turn had ended; what the turns before it left to be
    embedded may be in it."""
    split_seconds: float | None
    """The part of it in which messages were moved into topics; None if none were."""


class TurnClock(BaseCallbackHandler):
    """Takes the CPU time of turns and of their splits, as a callback of a graph."""

    run_inline = True

    def __init__(self) -> None:
        self._splits: dict[UUID, float] = {}
        self._split: float | None = None
        self._began = 0.0

    def start(self) -> None:
        """A turn begins."""
        self._splits.clear()
        self._split, self._began = None, time.process_time()

    def stop(self, messages: int) -> FedTurn:
        """The turn has ended; returns what it cost."""
        return FedTurn(messages, time.process_time() - self._began, self._split)

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """A node begins."""
        if kwargs.get("name") == SPLIT:
            self._splits[run_id] = time.process_time()

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **kwargs: Any) -> None:
        """A node has ended; what it runs inside itself has other ids."""
        began = self._splits.pop(run_id, None)
        # A split may only drop the recall notes; then no topic was given anything.
        if began is not None and outputs["turn"].get("split"):
            self._split = time.process_time() - began
