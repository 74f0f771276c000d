"""Background work that nothing waits for, not even the interpreter when it ends."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from threading import Condition, Thread
from typing import TypeVar

T = TypeVar("T")


def submit_daemon(call: Callable[[], T]) -> Future[T]:
    """Run a call in a daemon thread, and return the future of its result.

    The thread is a daemon, unlike those of an executor, which the interpreter waits for when it
    ends: a model that answers in a minute would hold it up for that minute. What is begun cannot be
    cancelled; whatever the call raises is the future's exception.
    """
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

    Thread(target=work, name="topicloom-background", daemon=True).start()
    return future


def asubmit_daemon(call: Callable[[], T]) -> asyncio.Future[T]:
    """The same for the event loop: the future is done there, and asyncio's own pool stays free."""
    return asyncio.wrap_future(submit_daemon(call))


class _ExitGate:
    """Counts the threads inside, and refuses further ones once the interpreter ends."""

    def __init__(self) -> None:
        self._inside = 0
        self._closed = False
        self._changed = Condition()

    def enter(self) -> None:
        """Raises CancelledError if it is shut."""
        with self._changed:
            if self._closed:
                raise CancelledError
            self._inside += 1

    def leave(self) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        """Wait until all threads are out."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)


_exit_gate = _ExitGate()
atexit.register(_exit_gate.close)


@contextmanager
def defer_exit() -> Iterator[None]:
    """Around native code that may run in the background: the interpreter ends before or after it.

    A daemon thread that comes back from C++ when the interpreter is gone takes the whole process
    down with it. Keep what is inside short: ending waits for it.

    Raises:
        CancelledError: The interpreter is about to end.
    """
    _exit_gate.enter()
    try:
        yield
    finally:
        _exit_gate.leave()
