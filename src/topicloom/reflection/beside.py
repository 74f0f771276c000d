"""Reflection upon the sessions of a graph: by a scheduler beside it, or once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Required, TypedDict, Unpack

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from topicloom.reflection.due import DueState, Reason, ReflectionPolicy, find_due_reason
from topicloom.reflection.reflect import Reflection, ReflectionRunner
from topicloom.reflection.scheduler import ReflectionScheduler, read_system_clock
from topicloom.reflection.sessions import StoredSessionSource
from topicloom.reflection.store import ReflectionStore
from topicloom.roles.registry import Roles
from topicloom.storage.base import Storage


class ReflectionOptions(TypedDict, total=False):
    """The parts of a graph that reflection needs, and its own options."""

    checkpointer: Required[BaseCheckpointSaver[Any]]
    """The one that the graph was compiled with."""
    storage: Required[Storage]
    """The one that the graph was built with, or another over the same place."""
    store: Required[BaseStore]
    """Holds facts, marks and leases; may be shared by many processes and machines."""
    roles: Required[Roles]
    """Find facts and write briefs."""
    policy: ReflectionPolicy
    """When sessions are due; the defaults if not given."""
    clock: Callable[[], datetime]
    """Tells the time, with its zone; the system's if not given."""
    external: Callable[[str], object]
    """The application's own `chat_records` of a session, None for the transcript."""


def reflect_beside(
    *,
    only: Collection[str] | None = None,
    review: Callable[[str], Awaitable[object]] | None = None,
    **options: Unpack[ReflectionOptions],
) -> ReflectionScheduler:
    """A scheduler that reflects upon the sessions of a graph; it has still to be started.

    Args:
        review: Reviews a session, once a day when it is silent; nobody does if not given.
        only: The sessions that it looks after; all of the storage if not given.
        options: See `ReflectionOptions`.
    """
    runner, clock = _make_runner(options, only)
    sessions = runner.sessions
    return ReflectionScheduler(sessions, runner, sessions.policy, clock, review=review)


@dataclass(frozen=True, slots=True)
class ReflectionResult:
    """The outcome of `reflect_once`."""

    state: DueState
    reason: Reason | None
    """Why it was due; None if it was not."""
    reflections: tuple[Reflection, ...]
    """The reflections, in order: one reads only so many messages."""


def reflect_once(
    session: str, *, force: bool = False, **options: Unpack[ReflectionOptions]
) -> ReflectionResult:
    """Reflect upon a session in the calling thread if it is due.

    Args:
        session: The thread.
        force: Whether to read what is pending though it is not due.
        options: See `ReflectionOptions`.

    Raises:
        SessionBusyError: Another reflects upon it just now.
        UnusableAnswerError: The reflector and its stand-in both failed.
        StorageError: What is stored cannot be read.
    """
    runner, clock = _make_runner(options, [session])
    sessions, kept, policy = runner.sessions, runner.sessions.store, runner.sessions.policy
    now = clock().timestamp()
    with kept.hold_lease(session, now, policy) as owner:
        state = replace(sessions.get_state(session), processing=None)
        reason, progress = find_due_reason(state, now, policy), state.progress
        found: list[Reflection] = []
        while force or reason:
            done = runner.run(session)
            before, progress = progress, kept.progress([session]).get(session, progress)
            if progress == before:
                break
            found.append(done)
            kept.renew_lease(session, owner, clock().timestamp())
        return ReflectionResult(state, reason, tuple(found))


def _make_runner(
    options: ReflectionOptions, only: Collection[str] | None
) -> tuple[ReflectionRunner, Callable[[], datetime]]:
    clock = options.get("clock") or read_system_clock
    sessions = StoredSessionSource(
        checkpointer=options["checkpointer"],
        storage=options["storage"],
        store=ReflectionStore(options["store"]),
        policy=options.get("policy") or ReflectionPolicy(),
        clock=lambda: clock().timestamp(),
        only=only,
    )
    return ReflectionRunner(sessions, options["roles"], options.get("external")), clock
