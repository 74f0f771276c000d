"""Running reflections: one tick over all sessions, and a notice when a turn has ended.

What is due is derived from the sessions' own checkpoints every time, so a restart loses nothing
and `notify` may be missed. A session is processed by one task of this process and, by a lease in
the store, by one process. Everything that may block runs in worker threads, beside the turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from threading import Thread
from typing import Any, Self, TypeVar
from uuid import uuid4

from topicloom.reflection.due import (
    DueState,
    Reason,
    ReflectionPolicy,
    ReflectionProgress,
    find_due_reason,
    is_review_due,
)
from topicloom.reflection.sessions import StoredSessionSource
from topicloom.state.safe_text import describe_error

_log = logging.getLogger("topicloom.reflection")
_log.addHandler(logging.NullHandler())
_FAILURES = 200

T = TypeVar("T")


class ReflectionScheduler:
    """Reflects upon sessions when they are due; start and stop it on one event loop.

    async with ReflectionScheduler(sessions, reflect) as scheduler:
        await graph.ainvoke(message, thread)
        scheduler.notify("thread-1")
    """

    def __init__(
        self,
        sessions: StoredSessionSource,
        reflect: Callable[[str], Awaitable[object]],
        policy: ReflectionPolicy | None = None,
        clock: Callable[[], datetime] | None = None,
        *,
        review: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        """A scheduler, not started.

        Args:
            sessions: The sessions to look after.
            reflect: Reflects upon a session, without blocking the event loop.
            policy: When sessions are due; the defaults if not given.
            clock: Tells the time, with its zone; the system's if not given.
            review: Reviews a session likewise, by `areview_session`; nobody does if not given.
        """
        self.failures: deque[tuple[str, str]] = deque(maxlen=_FAILURES)
        """The newest failures, newest last, which are logged too: the session that was due or could
        not be read, "" for all of them, and why."""
        self._sessions = sessions
        self._reflect = reflect
        self._review = review
        self._policy = policy or ReflectionPolicy()
        self._clock = clock or read_system_clock
        self._owner = uuid4().hex
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
            self._ticker = asyncio.create_task(self._tick_forever(), name="topicloom-reflection")

    async def stop(self, *, wait: bool = True) -> None:
        """End. Does nothing if it is not running.

        Reflections that have begun come to their end, or with `wait=False` are cancelled, and due
        again at the next start.
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

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
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
        due = 0
        for name in await self._try_in_thread("", self._sessions.list_sessions) or []:
            state = await self._try_in_thread(name, partial(self._sessions.get_state, name))
            if state and self._find_reason(state):
                self._begin(name)
                due += 1
        return due

    async def wait_idle(self) -> None:
        """Wait until nothing is being processed."""
        while self._running:
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _tick_forever(self) -> None:
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
        try:
            async with self._room:
                more, reached = True, None
                while more and self._loop is not None:
                    self._again.discard(session)
                    before, reached = reached, await self._reflect_if_due(session)
                    # A reflection without progress waits for the next tick.
                    more = reached not in (None, before) or session in self._again
        finally:
            self._again.discard(session)
            del self._running[session]

    async def _reflect_if_due(self, session: str) -> ReflectionProgress | None:
        """Reflect upon a session if it is due, or review it.

        Returns:
            Its progress before that, if it may be due again.
        """
        sessions = self._sessions
        state = await self._try_in_thread(session, partial(sessions.get_state, session))
        if state is None or self._find_reason(state) is None:
            return None
        lease = session, self._owner
        take = partial(sessions.acquire_lease, *lease, self._read_clock())
        try:
            if not await self._try_in_thread(session, take):
                return None
            return await self._reflect_with_lease(session)
        finally:
            await self._try_in_thread(session, partial(sessions.release_lease, *lease))

    async def _reflect_with_lease(self, session: str) -> ReflectionProgress | None:
        # Whoever held the lease a moment ago may have done what was due.
        state = await self._try_in_thread(session, partial(self._sessions.get_state, session))
        reason = self._find_reason(state) if state else None
        if state is None or reason is None:
            return None
        (outcome,) = await asyncio.gather(
            self._work_in_time(session, reason), return_exceptions=True
        )
        if isinstance(outcome, Exception):
            self._unwrap_outcome(session, outcome)
            await self._save_progress(session, state.progress.fail(self._read_clock()))
            return None
        if reason != "review":
            return state.progress
        await self._save_progress(session, state.progress.review(self._read_clock()))
        return None

    async def _save_progress(self, session: str, progress: ReflectionProgress) -> None:
        save = partial(self._sessions.save_progress, session, progress)
        await self._try_in_thread(session, save)

    async def _work_in_time(self, session: str, reason: Reason) -> object:
        work = self._review if reason == "review" and self._review else self._reflect
        async with asyncio.timeout(self._policy.lease_seconds):
            return await work(session)

    def _find_reason(self, state: DueState) -> Reason | None:
        """The reason why a session is due; reflection goes before a review."""
        now = self._read_clock()
        reviewed = self._review and is_review_due(state, now, self._policy)
        return find_due_reason(state, now, self._policy) or ("review" if reviewed else None)

    async def _try_in_thread(self, session: str, work: Callable[[], T]) -> T | None:
        """The result of some work in a worker thread; None, with its failure kept, if it fails."""
        # A session that fails stops no other: failures are gathered as values, whatever they are.
        (outcome,) = await asyncio.gather(asyncio.to_thread(work), return_exceptions=True)
        return self._unwrap_outcome(session, outcome)

    def _unwrap_outcome(self, session: str, outcome: T | BaseException) -> T | None:
        if isinstance(outcome, Exception):
            failure = describe_error(outcome)
            self.failures.append((session, failure))
            _log.warning("reflection of %r: %s", session, failure)
            return None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _read_clock(self) -> float:
        return self._clock().timestamp()


def read_system_clock() -> datetime:
    """The time now, in the zone of this machine."""
    return datetime.now().astimezone()


@contextmanager
def run_in_thread(scheduler: ReflectionScheduler) -> Iterator[None]:
    """Run a scheduler in a thread of its own.

    A reflection that runs at the end is waited for, or broken off if something was raised.
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
            await_there(scheduler.wait_idle())
        finally:
            await_there(scheduler.stop(wait=False))
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
