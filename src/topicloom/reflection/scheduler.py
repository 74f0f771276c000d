"""Running reflections: one tick over all sessions, and a nudge when a turn has ended.

What is due is asked of the sessions' own checkpoints every time, so a restart loses nothing and
`notify` may be missed. A session is processed by one task of this process and, by a lease in the
store, by one process. Everything that may block runs in worker threads, beside the turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Thread
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar
from uuid import uuid4

from topicloom.reflection.due import (
    DueState,
    Reason,
    ReflectionPolicy,
    find_due_reason,
    mark_failed,
    mark_processing,
)

_log = logging.getLogger("topicloom.reflection")
_log.addHandler(logging.NullHandler())
_REPORTS = 200
"""Newest reports that are kept."""

T = TypeVar("T")


class SessionSource(Protocol):
    """Where sessions stand. Every method may block, raise, and be called from several threads."""

    def standings(self) -> Iterator[tuple[str, Callable[[], DueState]]]:
        """Every session with a call that says where it stands."""
        ...

    def standing(self, session: str) -> DueState:
        """Where one session stands."""
        ...

    def hold(self, session: str, owner: str, since: float) -> bool:
        """Take the lease of a session; False if another has it."""
        ...

    def release(self, session: str, owner: str) -> None:
        """Give the lease back, if it is held."""
        ...

    def keep(self, standing: DueState) -> None:
        """Write what has to last of a standing."""
        ...


@dataclass(frozen=True, slots=True)
class ReflectionReport:
    """What became of a session that was due, or could not be looked at."""

    session: str
    """The thread; "" for all of them."""
    reason: Reason | None = None
    """Why it was due; None if it could not be told."""
    outcome: object = None
    """What the reflection came to."""
    failure: str | None = None
    """Why there is none."""


class ReflectionScheduler:
    """Reflects upon sessions when they are due; start and stop it on one event loop.

    async with ReflectionScheduler(sessions, reflect) as scheduler:
        await graph.ainvoke(message, thread)
        scheduler.notify("thread-1")
    """

    def __init__(
        self,
        sessions: SessionSource,
        reflect: Callable[[str], Awaitable[object]],
        policy: ReflectionPolicy | None = None,
        clock: Callable[[], datetime] | None = None,
        *,
        owner: str | None = None,
    ) -> None:
        """A scheduler over some sessions.

        Args:
            sessions: Where sessions stand.
            reflect: Reflects upon a session, without blocking the event loop.
            policy: When sessions are due; the defaults if not given.
            clock: Tells the time, with its zone; the system's if not given.
            owner: Name of this scheduler in leases, unlike any other's; made up if not given.
        """
        self.reports: deque[ReflectionReport] = deque(maxlen=_REPORTS)
        """The newest reports, newest last; failures are logged too."""
        self._sessions = sessions
        self._reflect = reflect
        self._policy = policy or ReflectionPolicy()
        self._clock = clock or _read_system_clock
        self._owner = owner or uuid4().hex
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._room = asyncio.Semaphore(self._policy.at_once)

    async def start(self) -> None:
        """Begin to tick, the first time at once. Does nothing if it is running."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._room = asyncio.Semaphore(self._policy.at_once)
            self._ticker = asyncio.create_task(self._ticks(), name="topicloom-reflection")

    async def stop(self, *, wait: bool = True) -> None:
        """End. Does nothing if it is not running.

        Args:
            wait: Whether reflections that have begun come to their end; they are cancelled
                otherwise, and are due again at the next start.
        """
        self._loop = None
        running = list(self._running.values())
        ending = [*running, *([self._ticker] if self._ticker else [])]
        for task in ending if not wait else ending[len(running) :]:
            task.cancel()
        self._ticker = None
        await asyncio.gather(*ending, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop(wait=kind is None)

    def notify(self, session: str) -> None:
        """Say that a turn of a session has ended. Returns at once; any thread may call it."""
        loop = self._loop
        if loop is not None:
            # A loop that closes just now needs no nudge: the next start finds what is due.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._begin, session)

    async def tick(self) -> int:
        """Look at all sessions and begin with those that are due; returns how many."""
        found = await self._tried("", lambda: list(self._sessions.standings())) or []
        outcomes = await asyncio.to_thread(_run_each, [look for _, look in found])
        names = [name for name, _ in found]
        standings = [self._told(n, o) for n, o in zip(names, outcomes, strict=True)]
        now = self._now()
        ready = [s.session for s in standings if s and find_due_reason(s, now, self._policy)]
        for name in ready:
            self._begin(name)
        return len(ready)

    async def idle(self) -> None:
        """Wait until nothing is being processed."""
        while self._running:
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _ticks(self) -> None:
        while True:
            await self.tick()
            await asyncio.sleep(self._policy.tick_seconds)

    def _begin(self, session: str) -> None:
        if self._loop is None:
            return
        if session in self._running:
            self._again.add(session)
            return
        task = asyncio.create_task(self._process(session), name=f"topicloom-reflect-{session}")
        self._running[session] = task

    async def _process(self, session: str) -> None:
        """Reflect upon a session until it is not due any more."""
        try:
            async with self._room:
                more = True
                while more and self._loop is not None:
                    self._again.discard(session)
                    more = await self._once(session) or session in self._again
        finally:
            self._again.discard(session)
            del self._running[session]

    async def _once(self, session: str) -> bool:
        """Reflect upon a session if it is due; whether that was done."""
        look = self._sessions.standing
        standing = await self._tried(session, lambda: look(session))
        if standing is None or find_due_reason(standing, self._now(), self._policy) is None:
            return False
        held = mark_processing(standing, self._now())
        since = held.processing or 0.0
        take, give = self._sessions.hold, self._sessions.release
        try:
            if not await self._tried(session, lambda: take(session, self._owner, since)):
                return False
            return await self._reflected(session)
        finally:
            await self._tried(session, lambda: give(session, self._owner))

    async def _reflected(self, session: str) -> bool:
        """With the lease held: whether a reflection came to its end."""
        look = self._sessions.standing
        # Whoever held it a moment ago may have done what was due. Marks beside the own one are
        # those of others that see it and give way.
        standing = await self._tried(session, lambda: look(session))
        free = replace(standing, processing=None) if standing else None
        reason = find_due_reason(free, self._now(), self._policy) if free else None
        if free is None or reason is None:
            return False
        (outcome,) = await asyncio.gather(self._within_lease(session), return_exceptions=True)
        if isinstance(outcome, Exception):
            self._told(session, outcome, reason)
            after = mark_failed(free, self._now())
            await self._tried(session, lambda: self._sessions.keep(after))
            return False
        self._tell(ReflectionReport(session, reason, outcome))
        return True

    async def _within_lease(self, session: str) -> object:
        async with asyncio.timeout(self._policy.lease_seconds):
            return await self._reflect(session)

    async def _tried(self, session: str, work: Callable[[], T]) -> T | None:
        """What some work comes to in a worker thread; None, with a report, if it fails."""
        # A session that fails stops no other: failures are gathered as values, whatever they are.
        (outcome,) = await asyncio.gather(asyncio.to_thread(work), return_exceptions=True)
        return self._told(session, outcome)

    def _told(
        self, session: str, outcome: T | BaseException, reason: Reason | None = None
    ) -> T | None:
        """An outcome; None, with a report, for a failure."""
        if isinstance(outcome, Exception):
            failure = f"{type(outcome).__name__}: {outcome}"
            self._tell(ReflectionReport(session, reason, failure=failure))
            return None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _tell(self, report: ReflectionReport) -> None:
        self.reports.append(report)
        if report.failure:
            _log.warning("reflection of %r: %s", report.session, report.failure)

    def _now(self) -> float:
        return self._clock().timestamp()


def _run_each(works: Sequence[Callable[[], T]]) -> list[T | BaseException]:
    """What each piece of work comes to, one after the other; the exception of one that fails."""
    with ThreadPoolExecutor(1) as pool:
        futures = [pool.submit(work) for work in works]
    return [future.exception() or future.result() for future in futures]


def _read_system_clock() -> datetime:
    return datetime.now().astimezone()


@contextmanager
def run_in_thread(scheduler: ReflectionScheduler) -> Iterator[None]:
    """Run a scheduler in a thread of its own.

    What is being reflected upon at the end comes to its end, unless something was raised: then it
    is broken off, and due again the next time.
    """
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        loop = runner.get_loop()
        thread = Thread(target=loop.run_forever, name="topicloom-reflection", daemon=True)
        thread.start()

        def await_there(work: Coroutine[Any, Any, None]) -> None:
            asyncio.run_coroutine_threadsafe(work, loop).result()

        try:
            await_there(scheduler.start())
            yield
            await_there(scheduler.idle())
        finally:
            await_there(scheduler.stop(wait=False))
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
