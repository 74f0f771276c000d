"""Background work that nothing waits for, not even the interpreter when it ends."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, contextmanager
from queue import SimpleQueue
from threading import Condition, Thread
from typing import TypeVar

T = TypeVar("T")
_PATIENCE = 5.0
"""Seconds at most that the interpreter's end waits for what goes on in the background."""


class DaemonWorker:
    """Makes calls one after another in one daemon thread, which ends when the worker is dropped.

    The thread is a daemon, unlike those of an executor, which the interpreter waits for when it
    ends: a model that answers in a minute would hold it up for that minute.
    """

    def __init__(self, name: str = "topicloom-background") -> None:
        """The thread, of that name, begins with the first call."""
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] | None = None

    @property
    def waiting(self) -> int:
        """Calls that have not begun."""
        return self._calls.qsize() if self._calls else 0

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """The future of a call's result, or of whatever it raises; begun, it can't be cancelled."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                result = context.run(call)
            except BaseException as error:  # noqa: BLE001 - the future raises it
                future.set_exception(error)
            else:
                future.set_result(result)

        if self._calls is None:
            self._calls = SimpleQueue()
            Thread(target=_work, args=(self._calls,), name=self._name, daemon=True).start()
            weakref.finalize(self, self._calls.put, None)
        self._calls.put(work)
        return future


def _work(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # what it holds goes before the next one comes


def submit_daemon(call: Callable[[], T]) -> Future[T]:
    """Make a call in a daemon thread of its own, and return the future of its result."""
    return DaemonWorker().submit(call)


def asubmit_daemon(call: Callable[[], T]) -> asyncio.Future[T]:
    """The same for the event loop: the future is done there, and asyncio's own pool stays free."""
    return asyncio.wrap_future(submit_daemon(call))


class _ExitGate:
    """Counts the threads inside, and refuses further ones once it is shut."""

    def __init__(self) -> None:
        self._inside = 0
        self._closed = False
        self._changed = Condition()

    @contextmanager
    def passing(self) -> Iterator[None]:
        with self._changed:
            if self._closed:
                raise CancelledError
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Wait until all threads are out, but not for long: some wait for a server."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0, _PATIENCE)


_exit_gate = _ExitGate()
atexit.register(_exit_gate.close)


def defer_exit() -> AbstractContextManager[None]:
    """Around native code that may run in the background: the interpreter ends before or after it.

    A daemon thread that comes back from C++ when the interpreter is gone takes the whole process
    down with it. Keep what is inside short: ending waits for it, for 5 seconds at most.

    Raises:
        CancelledError: The interpreter is about to end.
    """
    return _exit_gate.passing()
