"""A scheduler beside a compiled session graph, made of the parts that the graph has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from topicloom.roles.team import Roles
from topicloom.scheduling.reflect import Reflecting
from topicloom.scheduling.scheduler import ReflectionScheduler
from topicloom.scheduling.sessions import StoredSessions
from topicloom.state.reflection import ReflectionPolicy
from topicloom.storage.base import Storage
from topicloom.storage.reflections import ReflectionStore


def reflect_beside(
    *,
    checkpointer: BaseCheckpointSaver[Any],
    storage: Storage,
    store: BaseStore,
    roles: Roles,
    policy: ReflectionPolicy | None = None,
    clock: Callable[[], datetime] | None = None,
    external: Callable[[str], object] | None = None,
) -> ReflectionScheduler:
    """A scheduler that reflects upon the sessions of a graph; it has still to be started.

    Args:
        checkpointer: The one that the graph was compiled with.
        storage: The one that the graph was built with, or another over the same place.
        store: Keeps facts, marks and leases; may be shared by many processes and machines.
        roles: Find facts and write briefs.
        policy: When sessions are due; the defaults if not given.
        clock: Tells the time, with its zone; the system's if not given.
        external: The application's own `chat_records` of a session, None for the transcript.
    """
    policy = policy or ReflectionPolicy()
    tell = clock or _system_clock

    def seconds() -> float:
        return tell().timestamp()

    sessions = StoredSessions(
        checkpointer=checkpointer,
        storage=storage,
        kept=ReflectionStore(store),
        policy=policy,
        clock=seconds,
    )
    reflecting = Reflecting(sessions, roles, policy=policy, clock=seconds, external=external)
    return ReflectionScheduler(sessions, reflecting, policy, tell)


def _system_clock() -> datetime:
    return datetime.now().astimezone()
