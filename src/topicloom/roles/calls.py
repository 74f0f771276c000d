"""Asking roles: the one place where a role's failure is caught and turned into a value."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Generic

from topicloom.background import submit_daemon
from topicloom.effects import Step, arun_step, perform, run_step
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


RoleOutcome = tuple[Any | None, Call]
"""The answer, None if the role failed; and the call for the receipt, whose `failure` says why."""


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """A call to make, as an effect that never fails."""

    name: RoleName
    role: Role[Any, Any]
    request: Any
    topic: str | None = None
    """For the receipt."""

    def perform(self) -> RoleOutcome:
        """Make the call in the calling thread; one with a deadline in a thread of its own."""
        began = time.monotonic()
        try:
            answer = _check_answer(self, self._answer())
        except Exception as error:  # noqa: BLE001 - a role's failure costs its contribution only
            return _make_failure(self, error, time.monotonic() - began)
        return _make_outcome(self, answer, time.monotonic() - began)

    async def aperform(self) -> RoleOutcome:
        """Make the call on the event loop."""
        began = time.monotonic()
        try:
            given = await asyncio.wait_for(self.role.acall(self.request), self.role.deadline)
            answer = _check_answer(self, given)
        except Exception as error:  # noqa: BLE001 - a role's failure costs its contribution only
            return _make_failure(self, error, time.monotonic() - began)
        return _make_outcome(self, answer, time.monotonic() - began)

    def _answer(self) -> Answer[Any]:
        deadline = self.role.deadline
        if deadline is None:
            return self.role.call(self.request)
        # Neither the turn nor the end of the interpreter waits for a call that is late; its thread
        # ends with the client's own timeout.
        return submit_daemon(partial(self.role.call, self.request)).result(deadline)


@dataclass(frozen=True, slots=True)
class _SideBySide:
    """Several calls at once."""

    asks: Sequence[RoleRequest]

    def perform(self) -> list[RoleOutcome]:
        if len(self.asks) == 1 or all(ask.role.deadline is None for ask in self.asks):
            return [ask.perform() for ask in self.asks]
        return [begun.result() for begun in [submit_daemon(ask.perform) for ask in self.asks]]

    async def aperform(self) -> list[RoleOutcome]:
        return await asyncio.gather(*(ask.aperform() for ask in self.asks))


def ask_role(
    name: RoleName, role: Role[Q, A], request: Q, topic: str | None = None
) -> Step[tuple[A | None, Call]]:
    """Within a step: make one call. The answer is None if the role failed."""
    return (yield from perform(RoleRequest(name, role, request, topic)))


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
    asks = [RoleRequest(name, role, q, t) for q, t in zip(requests, about, strict=True)]
    return (yield from perform(_SideBySide(asks)))


def _make_failure(ask: RoleRequest, error: Exception, seconds: float) -> RoleOutcome:
    reason = (
        f"no answer within {ask.role.deadline:g} s"
        if isinstance(error, TimeoutError) and ask.role.deadline is not None
        else describe_error(error, repr(ask.request))
    )
    call = Call(role=ask.name, model=ask.role.model, topic=ask.topic, seconds=seconds)
    return None, call.model_copy(update=_spent(error) | {"failure": reason})


def _check_answer(ask: RoleRequest, answer: Answer[Any]) -> Answer[Any]:
    """The answer; raises `UnusableAnswerError` if its role does not give such a one."""
    value = answer.value if isinstance(answer, Answer) else answer
    if not isinstance(answer, Answer) or not spec_of(ask.name).accepts(value):
        raise UnusableAnswerError(f"a {ask.name} may not answer with {type(value).__name__!r}")
    return answer


def _make_outcome(ask: RoleRequest, answer: Answer[Any], seconds: float) -> RoleOutcome:
    remarks = tuple(map(clip, answer.remarks))
    call = Call(role=ask.name, topic=ask.topic, seconds=seconds, remarks=remarks)
    return answer.value, call.model_copy(update=_spent(answer))


def _spent(of: object) -> dict[str, Any]:
    """The cost of an answer, or of a failure that knows it: its fields are those of a call."""
    usage = getattr(of, "usage", None)
    return asdict(usage) if isinstance(usage, Usage) else {}
