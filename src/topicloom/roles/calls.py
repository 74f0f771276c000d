"""Asking roles: the one place where a role's failure is caught and turned into a value.

A node is written once, as a generator that yields the calls it wants made and is sent what
came of them. `run` and `arun` drive it: synchronously with worker threads, or on the event
loop with the generator's own blocking work (storage, index) in a worker thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from topicloom.errors import UnusableAnswerError
from topicloom.roles.base import Answer, Role, RoleName
from topicloom.roles.registry import spec_of
from topicloom.state.receipt import Call

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Ask:
    """A call to make."""

    name: RoleName
    role: Role[Any, Any]
    request: Any
    topic: str | None = None
    """For the receipt."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call."""

    value: Any | None
    """The answer; None if the role failed."""
    call: Call
    """For the receipt; `call.failure` says why it failed."""


Step = Generator[Sequence[Ask], Sequence[Outcome], R]
"""A node's work: yields batches of calls, is sent their outcomes, returns the state update."""


def ask(
    name: RoleName, role: Role[Q, A], request: Q, topic: str | None = None
) -> Generator[Sequence[Ask], Sequence[Outcome], tuple[A | None, Call]]:
    """Within a step: make one call. The answer is None if the role failed."""
    (outcome,) = yield [Ask(name, role, request, topic)]
    return cast("A | None", outcome.value), outcome.call


def ask_either(
    name: RoleName,
    roles: Sequence[Role[Q, A]],
    request: Q,
    calls: list[Call],
    topic: str | None = None,
) -> Generator[Sequence[Ask], Sequence[Outcome], A | None]:
    """Within a step: what the first role answers that does not fail, such as a stand-in.

    What was called is added to `calls`. The answer is None if all of them failed.
    """
    for role in roles:
        answer, call = yield from ask(name, role, request, topic)
        calls.append(call)
        if answer is not None:
            return answer
    return None


def ask_each(
    name: RoleName, role: Role[Q, A], requests: Sequence[Q], topics: Sequence[str]
) -> Generator[Sequence[Ask], Sequence[Outcome], list[tuple[A | None, Call]]]:
    """Within a step: make several calls of one role in parallel."""
    outcomes = yield [Ask(name, role, q, t) for q, t in zip(requests, topics, strict=True)]
    return [(cast("A | None", o.value), o.call) for o in outcomes]


def run(step: Step[R]) -> R:
    """Drive a step synchronously."""
    try:
        asks = next(step)
        while True:
            asks = step.send(_perform_all(asks))
    except StopIteration as stop:
        return cast("R", stop.value)


async def arun(step: Step[R]) -> R:
    """Drive a step on the event loop."""
    asks, result = await asyncio.to_thread(_advance, step, None)
    while asks is not None:
        outcomes = await asyncio.gather(*(_aperform(ask) for ask in asks))
        asks, result = await asyncio.to_thread(_advance, step, outcomes)
    return cast("R", result)


def _advance(
    step: Step[R], outcomes: Sequence[Outcome] | None
) -> tuple[Sequence[Ask] | None, R | None]:
    # StopIteration may not cross a future, so the end of the step becomes a value here.
    try:
        return (next(step) if outcomes is None else step.send(outcomes)), None
    except StopIteration as stop:
        return None, cast("R", stop.value)


def _perform_all(asks: Sequence[Ask]) -> list[Outcome]:
    if len(asks) == 1 or all(ask.role.deadline is None for ask in asks):
        return [_perform(ask) for ask in asks]
    with ThreadPoolExecutor(len(asks)) as pool:
        contexts = [contextvars.copy_context() for _ in asks]
        futures = [pool.submit(c.run, _perform, a) for c, a in zip(contexts, asks, strict=True)]
        return [future.result() for future in futures]


def _perform(ask: Ask) -> Outcome:
    began = time.monotonic()
    try:
        answer = _checked(ask, _within(ask.role.deadline, lambda: ask.role.call(ask.request)))
    except Exception as error:  # noqa: BLE001 - a role's failure costs its contribution only
        return _failed(ask, error, time.monotonic() - began)
    return _answered(ask, answer, time.monotonic() - began)


async def _aperform(ask: Ask) -> Outcome:
    began = time.monotonic()
    try:
        given = await asyncio.wait_for(ask.role.acall(ask.request), ask.role.deadline)
        answer = _checked(ask, given)
    except Exception as error:  # noqa: BLE001 - a role's failure costs its contribution only
        return _failed(ask, error, time.monotonic() - began)
    return _answered(ask, answer, time.monotonic() - began)


def _within(deadline: float | None, call: Callable[[], Answer[A]]) -> Answer[A]:
    if deadline is None:
        return call()
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(contextvars.copy_context().run, call).result(deadline)
    finally:
        # The turn does not wait for a call that is late; its thread ends with the client's own
        # timeout.
        pool.shutdown(wait=False, cancel_futures=True)


def _failed(ask: Ask, error: Exception, seconds: float) -> Outcome:
    reason = (
        f"no answer within {ask.role.deadline:g} s"
        if isinstance(error, TimeoutError) and ask.role.deadline is not None
        else f"{type(error).__name__}: {error}"
    )
    call = Call(role=ask.name, model=ask.role.model, topic=ask.topic, seconds=seconds)
    return Outcome(None, call.model_copy(update={"failure": reason}))


def _checked(ask: Ask, answer: Answer[Any]) -> Answer[Any]:
    """The answer, if it is what its role gives.

    Raises:
        UnusableAnswerError: If it is something else.
    """
    value = answer.value if isinstance(answer, Answer) else answer
    if not isinstance(answer, Answer) or not spec_of(ask.name).accepts(value):
        raise UnusableAnswerError(f"a {ask.name} may not answer with {type(value).__name__!r}")
    return answer


def _answered(ask: Ask, answer: Answer[Any], seconds: float) -> Outcome:
    call = Call(role=ask.name, topic=ask.topic, seconds=seconds, remarks=answer.remarks)
    if answer.usage is not None:
        usage = answer.usage
        call = call.model_copy(
            update={
                "model": usage.model,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens,
                "repeated": usage.repeated,
            }
        )
    return Outcome(answer.value, call)
