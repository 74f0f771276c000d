"""Work in the background, and what becomes of it when the interpreter ends."""

from __future__ import annotations

import gc
import subprocess
import sys
from contextvars import ContextVar
from threading import current_thread

import pytest
from curations import PATIENCE

from topicloom.background import DaemonWorker, submit_daemon

SPEAKER: ContextVar[str] = ContextVar("SPEAKER", default="nobody")


def test_a_daemon_gives_its_result() -> None:
    assert submit_daemon(lambda: 3).result(PATIENCE) == 3


def test_a_daemon_raises_its_error() -> None:
    def fail() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        submit_daemon(fail).result(PATIENCE)


def test_it_knows_the_context_it_was_begun_in() -> None:
    token = SPEAKER.set("Ann")
    begun = submit_daemon(SPEAKER.get)
    SPEAKER.reset(token)
    assert begun.result(PATIENCE) == "Ann"


def test_it_cannot_be_cancelled_and_nobody_waits_for_it() -> None:
    begun = submit_daemon(current_thread)
    assert not begun.cancel()
    assert begun.result(PATIENCE).daemon


@pytest.mark.slow
def test_a_worker_makes_its_calls_in_one_thread_that_ends_with_it() -> None:
    worker = DaemonWorker()
    thread = worker.submit(current_thread).result(PATIENCE)
    assert worker.submit(current_thread).result(PATIENCE) is thread
    del worker
    gc.collect()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def ended(code: str) -> tuple[int, str, str]:
    """Run code in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, *sys.path], capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def test_the_interpreter_ends_after_native_code() -> None:
    assert ended(_INSIDE) == (0, "inside\nout again\n", "")


def test_and_before_any_more_of_it() -> None:
    assert ended(_AFTER) == (0, "CancelledError\n", "")


def test_what_goes_on_for_long_is_not_waited_for() -> None:
    assert ended(_LONG) == (0, "inside\n", "")


_BEGIN = """
import sys
sys.path[:] = sys.argv[1:]
from threading import Event
from topicloom.background import defer_exit, submit_daemon
"""
_INSIDE = f"""{_BEGIN}
inside = Event()
def native():
    with defer_exit():
        print("inside", flush=True)
        inside.set()
        Event().wait(0.1)
        print("out again", flush=True)
    Event().wait()
submit_daemon(native)
assert inside.wait(20)
"""
_AFTER = f"""{_BEGIN}
import atexit
import topicloom.background as background
closed = Event()
def late():
    closed.wait()
    with defer_exit():
        print("never")
told = submit_daemon(late)  # before the end: Python 3.12 begins no thread then
@atexit.register
def ending():
    background._exit_gate.close()
    closed.set()
    print(type(told.exception(20)).__name__, flush=True)
"""
_LONG = f"""{_BEGIN}
import topicloom.background as background
background._PATIENCE = 0.05
inside = Event()
def asking():
    with defer_exit():
        print("inside", flush=True)
        inside.set()
        Event().wait()
submit_daemon(asking)
assert inside.wait(20)
"""
