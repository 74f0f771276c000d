"""The session graph as a review meets it: looked into, and changed by a turn without messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from topicloom.context.options import TurnOptions
from topicloom.state.changes import TopicChange
from topicloom.state.session import Session, Turn

SessionApp = CompiledStateGraph[Any, TurnOptions, Any, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sight:
    """A session as its newest checkpoint has it."""

    session: Session
    waiting: bool
    """Whether a message still waits for its answer: its turn is under way, or has failed."""


def free(thread: str) -> AbstractContextManager[None]:
    """Holds nothing: for applications that see to it that a session has one turn at a time."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class SessionDoor:
    """A compiled session graph.

    LangGraph takes a graph that is called inside a node for a part of the graph around it, with
    the checkpoints of that. So each call is made in a context of its own.
    """

    graph: SessionApp
    hold: Callable[[str], AbstractContextManager[Any]] = free
    """Holds a session while it is changed, such as `Storage.lock`."""

    def look(self, thread: str) -> Sight:
        """The session now."""
        return _sight(thread, Context().run(self.graph.get_state, _config(thread)))

    async def alook(self, thread: str) -> Sight:
        """The same on the event loop."""
        return _sight(thread, await _apart(self.graph.aget_state(_config(thread))))

    def change(self, thread: str, changes: Sequence[TopicChange]) -> Turn | None:
        """Make changes by a turn; returns that turn, or None if another is not finished.

        Raises:
            SessionBusyError: If another process holds the session.
        """
        with self.hold(thread):
            if self.look(thread).waiting:
                return None
            state = Context().run(self._invoke, thread, changes)
        return Turn.model_validate(state["turn"])

    async def achange(self, thread: str, changes: Sequence[TopicChange]) -> Turn | None:
        """The same on the event loop."""
        with self.hold(thread):
            if (await self.alook(thread)).waiting:
                return None
            state = await _apart(self._ainvoke(thread, changes))
        return Turn.model_validate(state["turn"])

    def _invoke(self, thread: str, changes: Sequence[TopicChange]) -> dict[str, Any]:
        # One checkpoint at the end: killed before it, the session is as it was.
        state: dict[str, Any] = self.graph.invoke(
            {"messages": []}, _config(thread), context=_options(changes), durability="exit"
        )
        return state

    async def _ainvoke(self, thread: str, changes: Sequence[TopicChange]) -> dict[str, Any]:
        state: dict[str, Any] = await self.graph.ainvoke(
            {"messages": []}, _config(thread), context=_options(changes), durability="exit"
        )
        return state


def _options(changes: Sequence[TopicChange]) -> TurnOptions:
    return TurnOptions(answer=False, changes=tuple(changes))


def _config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}


async def _apart(work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.create_task(work, context=Context())


def _sight(thread: str, snapshot: StateSnapshot) -> Sight:
    session = Session.model_validate(snapshot.values.get("session") or {"id": thread})
    turn = snapshot.values.get("turn")
    answering = turn is None or Turn.model_validate(turn).answer
    return Sight(session, bool(snapshot.next) and answering)
