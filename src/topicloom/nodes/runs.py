"""Runs of a session graph: those of one thread take turns, and each knows whether it is a fork."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from threading import Lock, current_thread, main_thread
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from topicloom.errors import SessionBusyError
from topicloom.state.session import Session
from topicloom.state.superseding import removes_all
from topicloom.storage.writers import choose_branch
from topicloom.telemetry.report import Telemetry


def name_thread(thread: str, user: str = "", scope: str = "") -> RunnableConfig:
    """The configuration that names a thread, and whose it is, if a user or a scope is given."""
    person = {"user_id": user, "scope": scope} if user or scope else {}
    return {"configurable": {"thread_id": thread, **person}}


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a session graph."""

    thread: str
    """The thread; "" where there is none."""
    namespace: str = ""
    """Its place in a graph around it, if the session graph is a part of another."""
    fork: str = ""
    """A name of its own, if the caller named the checkpoint to go on from; else ""."""
    began: float = math.inf
    """When it was about to read its checkpoint, in seconds since the epoch."""
    queue: RunQueue | None = None
    cleared: bool | None = False
    """True if its input removes all messages, whatever follows; None if it has no input."""
    afterwards: list[Callable[[], object]] = field(default_factory=list, compare=False)
    """What its queue calls once it has ended."""

    renewed: set[str] = field(default_factory=set, compare=False)
    """The sessions of which this run has looked for purges: one look a run is enough."""

    def place(self, session: Session) -> Session:
        """The session on the branch that this run goes on with; see `choose_branch`."""
        return choose_branch(session, self.thread, self.fork, self.namespace)

    def call_afterwards(self, call: Callable[[], object]) -> None:
        """Make a call once it has ended; at once in an agent, which has no queue of its runs."""
        if self.queue is None:
            call()
        else:
            self.afterwards.append(call)

    def given(self, data: object) -> Run:
        return replace(self, cleared=None if data is None else removes_all(data))

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Make it the current one of what is called meanwhile, in other threads and tasks too."""
        token = _around.set((*_around.get(), self))
        try:
            yield
        finally:
            _around.reset(token)


_around: ContextVar[tuple[Run, ...]] = ContextVar("topicloom_runs", default=())


def current_run() -> Run:
    """The run of the session graph whose node this is called in."""
    info = get_runtime().execution_info
    thread = str(info.thread_id or "") if info else ""
    return next((run for run in reversed(_around.get()) if run.thread == thread), Run(thread))


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A place in a queue."""

    in_main: bool
    """True if the main thread waits there: unlike one of a pool, it goes on with nothing else."""
    reached: Future[None] = field(default_factory=Future)


class RunQueue:
    """Lets one run of a thread go on at a time, first come, first served.

    A run that has waited for too long goes on at the same time, and comes behind the other one as
    another process would.
    """

    def __init__(self, patience: float, telemetry: Telemetry) -> None:
        """An empty queue, in which nobody waits for more than `patience` seconds."""
        self._patience, self._telemetry = patience, telemetry
        self._mutex = Lock()
        self._queues: dict[str, deque[_Place]] = {}

    @contextmanager
    def hold(self, configurable: Mapping[str, Any]) -> Iterator[Run]:
        """Begin a run as soon as no other one of its thread goes on.

        Raises:
            SessionBusyError: It is called by the very run that it would have to wait for.
        """
        thread = str(configurable.get("thread_id") or "")
        place = self._enter(thread, current_thread() is main_thread())
        try:
            with suppress(TimeoutError):
                place.reached.result(self._patience)
            with self._begin(thread, configurable) as run:
                yield run
        finally:
            self._leave(thread, place)

    @asynccontextmanager
    async def ahold(self, configurable: Mapping[str, Any]) -> AsyncIterator[Run]:
        """The same on an event loop."""
        thread = str(configurable.get("thread_id") or "")
        place = self._enter(thread, in_main=False)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(place.reached), self._patience)
            with self._begin(thread, configurable) as run:
                yield run
        finally:
            self._leave(thread, place)

    @contextmanager
    def _begin(self, thread: str, configurable: Mapping[str, Any]) -> Iterator[Run]:
        namespace = str(configurable.get("checkpoint_ns") or "")
        # A graph around it that goes back names the checkpoints of its parts in the map.
        named = configurable.get("checkpoint_id") or namespace in configurable.get(
            "checkpoint_map", {}
        )
        run = Run(thread, namespace, uuid4().hex if named else "", time.time(), self)
        try:
            yield run
        except GraphBubbleUp:
            raise
        except Exception as error:
            self._telemetry.report_failure(thread, run.began, error)
            raise
        finally:
            for call in run.afterwards:
                call()

    def _enter(self, thread: str, in_main: bool) -> _Place:
        place = _Place(in_main)
        with self._mutex:
            queue = self._queues.setdefault(thread, deque())
            nested = any(run.queue is self and run.thread == thread for run in _around.get())
            if thread and (nested or (queue and in_main and queue[0].in_main)):
                raise SessionBusyError(
                    "session {thread!r} is in the middle of a turn, which this call is a part of:"
                    " a tool may not take a turn of the session that called it",
                    thread=thread,
                )
            queue.append(place)
            if queue[0] is place or not thread:
                place.reached.set_result(None)
        return place

    def _leave(self, thread: str, place: _Place) -> None:
        with self._mutex:
            queue = self._queues[thread]
            queue.remove(place)
            if not queue:
                del self._queues[thread]
            elif not queue[0].reached.done():  # done too where the waiting was cancelled
                queue[0].reached.set_result(None)
