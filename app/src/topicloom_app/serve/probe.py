"""Whether what keeps the sessions answers, for whoever asks if turns can be served."""

from __future__ import annotations

import asyncio

from topicloom.hosting import Graph, name_thread

_SECONDS = 0.9
"""Seconds that an answer is waited for: who asks is told within a second."""
_THREAD = "topicloom-readyz"
"""No session: nothing is ever written to it."""


class StorageProbe:
    """Asks the checkpoints and the store of a graph for something that is not there.

    One question is under way at a time, however often it is asked: where nothing answers, whoever
    asks next waits for the same one.
    """

    def __init__(self, graph: Graph) -> None:
        """For a graph; nothing is asked yet."""
        self._graph = graph
        self._asking: asyncio.Task[None] | None = None

    async def find_fault(self) -> str:
        """The reason why no turn can be served, without names of places; "" if one can be."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        asking = self._asking
        await asyncio.wait({asking}, timeout=_SECONDS)
        if not asking.done():
            return f"the storage gave no answer within {_SECONDS:g} s"
        error = asking.exception()
        return f"the storage cannot be used: {type(error).__name__}" if error else ""

    async def _ask(self) -> None:
        saver, store = self._graph.checkpointer, self._graph.store
        if saver and saver is not True:
            await saver.aget_tuple(name_thread(_THREAD))
        if store:
            await asyncio.to_thread(store.get, (_THREAD,), "none")
