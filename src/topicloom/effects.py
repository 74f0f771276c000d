"""Steps: work that is written once and driven in two ways, synchronously or on the event loop.

A step is a generator. It yields the calls that it wants made, such as one of a model, and is sent
what came of each; what a call raises is raised in the step, where it yielded. `run_step`
drives it in the calling thread; `arun_step` on the event loop, with the step's own blocking work
(storage, index) in worker threads. This is the only place where the two ways part.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Effect(Generic[T]):
    """A call that a step wants made, in two forms; see `either`."""

    sync: Callable[[], T]
    asynchronous: Callable[[], Awaitable[T]]
    held: AbstractContextManager[Any]

    def perform(self) -> T:
        """Make it in the calling thread."""
        with self.held:
            return self.sync()

    async def aperform(self) -> T:
        """Make it on the event loop, without blocking it."""
        with self.held:
            return await self.asynchronous()


Step = Generator[Effect[Any], Any, R]
"""Yields effects, is sent their results, returns its own."""


def either(
    sync: Callable[[], T],
    asynchronous: Callable[[], Awaitable[T]],
    held: AbstractContextManager[Any] | None = None,
) -> Step[T]:
    """Within a step: make a call that has two forms, such as `invoke` and `ainvoke`.

    `yield from` this gives its result.

    Args:
        sync: Makes it in the calling thread.
        asynchronous: Makes it on the event loop.
        held: Entered by the driver for as long as the call takes. Locks and context variables go
            by threads, and the parts of a step do not stay in one.
    """
    result: T = yield Effect(sync, asynchronous, nullcontext() if held is None else held)
    return result


def holding(held: AbstractContextManager[Any], step: Step[R]) -> Step[R]:
    """Within a step: drive another one while something is held, such as a lock."""
    return either(partial(run_step, step), partial(arun_step, step), held)


def run_step(step: Step[R]) -> R:
    """Drive a step in the calling thread; raises whatever it raises."""
    resume: Callable[[], Effect[Any]] = partial(next, step)
    while not isinstance(moved := _resume(resume), _Done):
        try:
            resume = partial(step.send, moved.perform())
        except BaseException as error:  # noqa: BLE001 - raised in the step that wanted it
            resume = partial(step.throw, error)
    result: R = moved.result
    return result


async def arun_step(step: Step[R]) -> R:
    """Drive a step on the event loop; raises whatever it raises.

    Where it is cancelled, what goes on in a worker thread comes to its end first, and then the step
    is told: it writes nothing behind the back of whoever comes next.
    """
    resume: Callable[[], Effect[Any]] = partial(next, step)
    while True:
        moved, cut = await _resume_in_thread(resume)
        if isinstance(moved, _Done):
            break
        try:
            if cut:
                raise cut
            resume = partial(step.send, await moved.aperform())
        except BaseException as error:  # noqa: BLE001 - the step gets it, even a cancellation
            resume = partial(step.throw, error)
    if cut:
        raise cut
    result: R = moved.result
    return result


def both(step: Callable[P, Step[R]]) -> tuple[Callable[P, R], Callable[P, Coroutine[Any, Any, R]]]:
    """The two forms of what is written as a step: in the calling thread, and on the event loop.

    names, anames = both(_names)
    """

    def sync(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_step(step(*args, **kwargs))

    async def asynchronous(*args: P.args, **kwargs: P.kwargs) -> R:
        return await arun_step(step(*args, **kwargs))

    name, signature = step.__name__.lstrip("_"), inspect.signature(step)
    result = str(signature.return_annotation).removeprefix("Step[").removesuffix("]")
    for form, named in ((sync, name), (asynchronous, f"a{name}")):
        update_wrapper(form, step)
        form.__name__ = named
        vars(form)["__signature__"] = signature.replace(return_annotation=result)
    asynchronous.__doc__ = f"`{name}` on the event loop."
    return sync, asynchronous


@dataclass(frozen=True, slots=True)
class _Done:
    """The end of a step."""

    result: Any


def _resume(resume: Callable[[], Effect[Any]]) -> Effect[Any] | _Done:
    # StopIteration may not cross a future, so the end of the step becomes a value here.
    try:
        return resume()
    except StopIteration as stop:
        return _Done(stop.value)


async def _resume_in_thread(
    resume: Callable[[], Effect[Any]],
) -> tuple[Effect[Any] | _Done, asyncio.CancelledError | None]:
    """Run one part of a step in a worker thread; returns its result, and the cancellation that
    came meanwhile, if any."""
    work, cut = asyncio.ensure_future(asyncio.to_thread(_resume, resume)), None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cut = error
    return work.result(), cut
