"""Steps: the same work in the calling thread and on the event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from topicloom.effects import Step, arun_step, either, holding, run_step


def forms() -> Step[str]:
    """Which form of a call was made."""

    async def asynchronous() -> str:
        return "asynchronous"

    return (yield from either(lambda: "sync", asynchronous))


def mended() -> Step[str]:
    """What was raised by a call is caught by the step that made it."""

    def fail() -> str:
        raise ValueError("sync")

    async def afail() -> str:
        raise ValueError("asynchronous")

    try:
        return (yield from either(fail, afail))
    except ValueError as error:
        form = yield from forms()
        return f"{error}, then {form}"


def nothing_asked() -> Step[int]:
    """A step that needs nobody."""
    return threading.get_ident()
    yield from forms()


async def test_each_form_where_it_belongs() -> None:
    assert run_step(forms()) == "sync"
    assert await arun_step(forms()) == "asynchronous"


async def test_errors_come_back_to_the_step() -> None:
    assert run_step(mended()) == "sync, then sync"
    assert await arun_step(mended()) == "asynchronous, then asynchronous"


async def test_a_steps_own_work_does_not_block_the_loop() -> None:
    here = threading.get_ident()
    assert run_step(nothing_asked()) == here
    assert await arun_step(nothing_asked()) != here


async def test_what_is_held_is_held_by_one_thread() -> None:
    threads: list[int] = []

    @contextmanager
    def held() -> Iterator[None]:
        threads.append(threading.get_ident())
        yield
        threads.append(threading.get_ident())

    assert run_step(holding(held(), forms())) == "sync"
    assert await arun_step(holding(held(), forms())) == "asynchronous"
    assert set(threads) == {threading.get_ident()}
    assert len(threads) == 4


async def test_a_cancelled_step_ends() -> None:
    begun = asyncio.Event()

    async def forever() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(arun_step(either(lambda: None, forever)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


LATE = """
import time
from topicloom.effects import run_step
from topicloom.roles.base import LocalRole
from topicloom.roles.calls import ask_role

class Slow(LocalRole[str, str]):
    deadline = 0.05

    def call(self, request):
        time.sleep(60)

answer, call = run_step(ask_role("rewriter", Slow(), "..."))
print(call.failure)
"""


@pytest.mark.slow
def test_a_late_call_does_not_keep_the_process_from_ending() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, check=True, timeout=45
    )
    assert done.stdout.strip() == "no answer within 0.05 s"


async def test_who_is_cancelled_ends_behind_its_own_work() -> None:
    begun, may_end = threading.Event(), threading.Event()
    done: list[str] = []

    def working() -> Step[str]:
        try:
            begun.set()
            may_end.wait(20)
            done.append("work")
            return (yield from forms())
        except asyncio.CancelledError:
            done.append("told")
            raise

    task = asyncio.create_task(arun_step(working()))
    await asyncio.to_thread(begun.wait, 20)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["work", "told"]


async def test_who_is_cancelled_while_its_work_ends_gives_no_result() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def working() -> Step[str]:
        begun.set()
        may_end.wait(20)
        return "done"
        yield from forms()

    task = asyncio.create_task(arun_step(working()))
    await asyncio.to_thread(begun.wait, 20)
    task.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
