"""Asking roles: the one place where a role's failure is caught and turned into a value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Generic

from topicloom.background import submit_daemon
from topicloom.effects import Step, arun_step, either, run_step
from topicloom.errors import UnusableAnswerError
from topicloom.roles.base import A, Answer, Q, Role, RoleName, Usage
from topicloom.roles.registry import spec_of
from topicloom.state.receipt import Call
from topicloom.state.safe_text import clip, describe_error


class Stepwise(Generic[Q, A]):
    """Base of roles whose answer is a step: written once for both forms of a call."""

    def step(self, request: Q) -> Step[Answer[A]]:
        """Come to an answer."""
        raise NotImplementedError

    def begin(self, request: Q) -> Step[Answer[A]]:
        """The step of one call."""
        return self.step(request)

    def call(self, request: Q) -> Answer[A]:
        """Answer the request; raises what `step` raises."""
        return run_step(self.begin(request))

    async def acall(self, request: Q) -> Answer[A]:
        """Answer the request without blocking the event loop; raises what `step` raises."""
        return await arun_step(self.begin(request))


def ask_role(
    name: RoleName, role: Role[Q, A], request: Q, topic: str | None = None
) -> Step[tuple[A | None, Call]]:
    """Within a step: make one call, one with a deadline in a thread of its own.

    The answer is None if the role failed; the call for the receipt says why. `topic` is for it too.
    """
    began = time.monotonic()
    value: A | None = None
    try:
        making = partial(_call, role, request), partial(_acall, role, request)
        answer = yield from either(*making)
        value = _check_value(name, answer)
        told = {"remarks": tuple(map(clip, answer.remarks))} | _spent(answer)
    except Exception as error:  # noqa: BLE001 - a role's failure costs its contribution only
        value, failure = None, _describe_failure(error, role, request)
        told = {"model": role.model} | _spent(error) | {"failure": failure}
    call = Call(role=name, topic=topic, seconds=time.monotonic() - began)
    return value, call.model_copy(update=told)


def ask_first(
    name: RoleName,
    roles: Sequence[Role[Q, A]],
    request: Q,
    calls: list[Call],
    topic: str | None = None,
) -> Step[A | None]:
    """Within a step: the answer of the first role that does not fail; adds to `calls`."""
    for role in roles:
        answer, call = yield from ask_role(name, role, request, topic)
        calls.append(call)
        if answer is not None:
            return answer
    return None


def ask_all(
    name: RoleName, role: Role[Q, A], requests: Sequence[Q], topics: Sequence[str | None] = ()
) -> Step[list[tuple[A | None, Call]]]:
    """Within a step: make several calls of one role in parallel.

    `topics` are for the receipt: the topic that each request is about, if they are about any.
    """
    about = topics or [None] * len(requests)
    steps = [ask_role(name, role, q, t) for q, t in zip(requests, about, strict=True)]

    def side_by_side() -> list[tuple[A | None, Call]]:
        if len(steps) == 1 or role.deadline is None:
            return list(map(run_step, steps))
        begun = [submit_daemon(partial(run_step, step)) for step in steps]
        return [one.result() for one in begun]

    async def aside_by_side() -> list[tuple[A | None, Call]]:
        return await asyncio.gather(*map(arun_step, steps))

    return (yield from either(side_by_side, aside_by_side))


def _call(role: Role[Q, A], request: Q) -> Answer[A]:
    if role.deadline is None:
        return role.call(request)
    # Neither the turn nor the end of the interpreter waits for a call that is late; its thread
    # ends with the client's own timeout.
    return submit_daemon(partial(role.call, request)).result(role.deadline)


async def _acall(role: Role[Q, A], request: Q) -> Answer[A]:
    return await asyncio.wait_for(role.acall(request), role.deadline)


def _check_value(name: RoleName, answer: Answer[A]) -> A:
    """The value of an answer; raises `UnusableAnswerError` if its role does not give such a one."""
    value = answer.value if isinstance(answer, Answer) else answer
    if not isinstance(answer, Answer) or not spec_of(name).accepts(value):
        raise UnusableAnswerError(f"a {name} may not answer with {type(value).__name__!r}")
    return answer.value


def _describe_failure(error: Exception, role: Role[Q, A], request: Q) -> str:
    if isinstance(error, TimeoutError) and role.deadline is not None:
        return f"no answer within {role.deadline:g} s"
    return describe_error(error, repr(request))


def _spent(of: object) -> dict[str, Any]:
    """The cost of an answer, or of a failure that knows it: its fields are those of a call."""
    usage = getattr(of, "usage", None)
    return asdict(usage) if isinstance(usage, Usage) else {}
