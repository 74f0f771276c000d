"""A session graph as reviews and `Memory` use it: to read a session, and to change it by a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from topicloom.effects import Step, either, holding
from topicloom.state.changes import TopicChange
from topicloom.state.channels import TurnOptions
from topicloom.state.session import Session, Turn

SessionApp = CompiledStateGraph[Any, TurnOptions, Any, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionClient:
    """A compiled session graph.

    LangGraph takes a graph that is called inside a node for a part of the graph around it, with
    the checkpoints of that. So each call is made in a context of its own.
    """

    graph: SessionApp
    hold: Callable[[str], AbstractContextManager[Any]] = nullcontext
    """Locks a session while it is changed, such as `Storage.lock`; nothing, for applications that
    give a session one turn at a time."""

    def read(self, config: RunnableConfig) -> Step[tuple[Session, bool]]:
        """Within a step: a thread's session, and if a message of it still waits for its answer.

        Its turn is under way then, or has failed.
        """
        get, aget = self.graph.get_state, self.graph.aget_state
        snapshot = yield from either(
            lambda: Context().run(get, config), lambda: _run_apart(aget(config))
        )
        new = {"id": str(config["configurable"]["thread_id"])}
        session = Session.model_validate(snapshot.values.get("session") or new)
        turn = snapshot.values.get("turn")
        answering = turn is None or Turn.model_validate(turn).answer
        return session, bool(snapshot.next) and answering

    def apply_changes(
        self, config: RunnableConfig, changes: Sequence[TopicChange]
    ) -> Step[Turn | None]:
        """Within a step: make changes by a turn; its result is None if another is not finished.

        Raises:
            SessionBusyError: If another process holds the session.
        """
        return self._hold(config, TurnOptions(answer=False, changes=tuple(changes)))

    def regroup(self, config: RunnableConfig) -> Step[Turn | None]:
        """Within a step: put right what is filed wrong; see `apply_changes`."""
        return self._hold(config, TurnOptions(answer=False, regroup=True))

    def _hold(self, config: RunnableConfig, options: TurnOptions) -> Step[Turn | None]:
        held = self.hold(str(config["configurable"]["thread_id"]))
        return holding(held, self._take_turn(config, options))

    def _take_turn(self, config: RunnableConfig, options: TurnOptions) -> Step[Turn | None]:
        _, waiting = yield from self.read(config)
        if waiting:
            return None
        # One checkpoint at the end: killed before it, the session is as it was.
        call = {
            "input": {"messages": []},
            "config": config,
            "context": options,
            "durability": "exit",
        }
        invoke, ainvoke = partial(self.graph.invoke, **call), partial(self.graph.ainvoke, **call)
        state = yield from either(lambda: Context().run(invoke), lambda: _run_apart(ainvoke()))
        return Turn.model_validate(state["turn"])


async def _run_apart(work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.create_task(work, context=Context())
