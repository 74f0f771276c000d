"""Asking roles: the one place where a role's failure is caught and turned into a value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from copy import copy
from dataclasses import asdict
from functools import partial
from typing import Any, Generic, Self

from topicloom.background import submit_daemon
from topicloom.effects import Step, arun_step, either, run_step
from topicloom.errors import LimitReachedError, UnusableAnswerError
from topicloom.roles.base import A, Answer, Q, Role, RoleName, Usage
from topicloom.roles.registry import spec_of
from topicloom.roles.waits import TurnWaits
from topicloom.state.receipt import Call
from topicloom.state.safe_text import clip, describe_error


class Stepwise(Generic[Q, A]):
    """Base of roles whose answer is a step: written once for both forms of a call."""

    deadline: float | None

    def within(self, seconds: float) -> Self:
        """The same role with a shorter deadline, past which its request is ended."""
        shorter = copy(self)
        shorter.deadline = seconds
        return shorter

    def step(self, request: Q) -> Step[Answer[A]]:
        raise NotImplementedError

    def begin(self, request: Q) -> Step[Answer[A]]:
        return self.step(request)

    def call(self, request: Q) -> Answer[A]:
        """Answer the request; raises what `step` raises."""
        return run_step(self.begin(request))

    async def acall(self, request: Q) -> Answer[A]:
        """Answer the request without blocking the event loop; raises what `step` raises."""
        return await arun_step(self.begin(request))


def ask_role(
    name: RoleName,
    role: Role[Q, A],
    request: Q,
    topic: str | None = None,
    *,
    waits: TurnWaits | None = None,
    late: Callable[[Future[Answer[A]]], object] | None = None,
) -> Step[tuple[A | None, Call]]:
    """Within a step: make one call, one with a deadline in a thread of its own.

    The answer is None if the role failed; the call for the receipt says why.

    Args:
        topic: For the receipt: the topic that the request is about.
        waits: What the turn has waited for, where a user waits: the role is asked only as long as
            that allows, or not at all, and the call is marked as `skipped` then. Without it,
            `LimitReachedError` is raised where a daily limit has the role rest.
        late: Takes the call that the turn waits for no longer; it goes on to the role's own
            deadline in the background. It is made even if the turn may wait for nothing more.
    """
    began, now = time.monotonic(), round(time.time(), 4)
    value: A | None = None
    if waits and (why := waits.refuse(name, role, waits=late is None)):
        return None, Call(role=name, topic=topic, model=role.model, failure=why, skipped=True)
    allowed = waits.allow(role) if waits else role.deadline
    if waits and late:
        late = partial(_give_up, late, partial(_note_end, waits, name, role, began))
    try:
        making = (
            partial(_call, role, request, allowed, late),
            partial(_acall, role, request, allowed, late),
        )
        held = nullcontext() if waits is None or allowed is None else waits.waiting()
        answer = yield from either(*making, held)
        value = _check_value(name, answer)
        details = {"remarks": tuple(map(clip, answer.remarks))} | _spent(answer)
        if waits:
            waits.note_answer(name, role)
    except LimitReachedError as error:
        if waits is None:  # what nobody waits for is done another day
            raise
        return None, Call(
            role=name, topic=topic, model=role.model, failure=error.reason, skipped=True
        )
    except Exception as error:  # noqa: BLE001 - the receipt has it, the turn goes on
        value, failure = None, _describe_failure(error, allowed, request)
        if waits:
            waits.note_failure(name, role, time.monotonic() - began, allowed or 0.0)
        details = {"model": role.model} | _spent(error) | {"failure": failure}
    call = Call(role=name, topic=topic, began=now, seconds=time.monotonic() - began)
    return value, call.model_copy(update=details)


def ask_first(
    name: RoleName,
    roles: Sequence[Role[Q, A]],
    request: Q,
    calls: list[Call],
    topic: str | None = None,
    *,
    waits: TurnWaits | None = None,
) -> Step[A | None]:
    """Within a step: the answer of the first role that does not fail; adds to `calls`."""
    for role in roles:
        answer, call = yield from ask_role(name, role, request, topic, waits=waits)
        calls.append(call)
        if answer is not None:
            return answer
    return None


def ask_all(
    name: RoleName,
    role: Role[Q, A],
    requests: Sequence[Q],
    topics: Sequence[str | None] = (),
    *,
    waits: TurnWaits | None = None,
    late: Callable[[str, Future[Answer[A]]], object] | None = None,
) -> Step[list[tuple[A | None, Call]]]:
    """Within a step: make several calls of one role in parallel.

    `topics` are for the receipt: the topic that each request is about, if they are about any.
    `late` takes the topic and the call of what comes late; see `ask_role` for it and for `waits`.
    """
    about = topics or [None] * len(requests)
    steps = [
        ask_role(name, role, q, t, waits=waits, late=partial(late, t) if late and t else None)
        for q, t in zip(requests, about, strict=True)
    ]

    def side_by_side() -> list[tuple[A | None, Call]]:
        if len(steps) == 1 or role.deadline is None:
            return list(map(run_step, steps))
        begun = [submit_daemon(partial(run_step, step)) for step in steps]
        return [one.result() for one in begun]

    async def aside_by_side() -> list[tuple[A | None, Call]]:
        return await asyncio.gather(*map(arun_step, steps))

    return (yield from either(side_by_side, aside_by_side))


def read_late(name: RoleName, made: Future[Answer[A]]) -> A | None:
    """The answer of a call that has ended after the turn had waited for it; None if it failed."""
    try:
        return _check_value(name, made.result())
    except Exception:  # noqa: BLE001 - the receipt already says that it was too late
        return None


def _give_up(
    late: Callable[[Future[Answer[A]]], object],
    ended: Callable[[Future[Answer[A]]], None],
    made: Future[Answer[A]],
) -> None:
    """Hand over a call that the turn waits for no longer; `ended` is told of its end."""
    made.add_done_callback(ended)
    late(made)


def _note_end(
    waits: TurnWaits, name: RoleName, role: Role[Q, A], began: float, made: Future[Answer[A]]
) -> None:
    waits.note_end(name, role, time.monotonic() - began, failed=read_late(name, made) is None)


def _call(
    role: Role[Q, A],
    request: Q,
    allowed: float | None,
    late: Callable[[Future[Answer[A]]], object] | None,
) -> Answer[A]:
    if allowed is None:
        return role.call(request)
    # Neither the turn nor the end of the interpreter waits for a call that is late; its thread
    # ends with the client's own timeout.
    made = submit_daemon(partial((role if late else _shorten(role, allowed)).call, request))
    try:
        return made.result(allowed)
    except TimeoutError:
        if late and not made.done():
            late(made)
        raise


async def _acall(
    role: Role[Q, A],
    request: Q,
    allowed: float | None,
    late: Callable[[Future[Answer[A]]], object] | None,
) -> Answer[A]:
    if late is None or allowed is None:
        shorter = role if allowed is None else _shorten(role, allowed)
        return await asyncio.wait_for(shorter.acall(request), allowed)
    # It may outlive the turn, and the event loop of the turn with it.
    made = submit_daemon(partial(role.call, request))
    try:
        return await asyncio.wait_for(asyncio.wrap_future(made), allowed)
    except TimeoutError:
        if not made.done():
            late(made)
        raise


def _shorten(role: Role[Q, A], allowed: float) -> Role[Q, A]:
    """The role, with less time where the turn allows less than its deadline."""
    if role.deadline is not None and allowed < role.deadline and isinstance(role, Stepwise):
        return role.within(allowed)
    return role


def _check_value(name: RoleName, answer: Answer[A]) -> A:
    """The value of an answer; raises `UnusableAnswerError` if its role does not give such a one."""
    value = answer.value if isinstance(answer, Answer) else answer
    if not isinstance(answer, Answer) or not spec_of(name).accepts(value):
        raise UnusableAnswerError(f"a {name} may not answer with {type(value).__name__!r}")
    return answer.value


def _describe_failure(error: Exception, allowed: float | None, request: object) -> str:
    if isinstance(error, TimeoutError) and allowed is not None:
        return f"no answer within {float(f'{allowed:.2g}'):g} s"
    return describe_error(error, repr(request))


def _spent(of: object) -> dict[str, Any]:
    """The cost of an answer, or of a failure that knows it: its fields are those of a call."""
    usage = getattr(of, "usage", None)
    return asdict(usage) if isinstance(usage, Usage) else {}
