"""Work between turns, wherever sessions live: reviews and reflections of those that are due, and
the end of what is too old.

Every process that has sessions open may run it: what is due is read from the sessions, and a lease
in the store sees to it that one of them does it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from functools import partial
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from topicloom.errors import TopicLoomError
from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.memory.expiry import aexpire_due
from topicloom.memory.review import areview_session, review_session
from topicloom.memory.stored import Graph, find_deps
from topicloom.nodes.runs import name_thread
from topicloom.reflection.reflect import reflect_beside
from topicloom.reflection.scheduler import ReflectionScheduler

_log = logging.getLogger("topicloom.memory")
_HOUR = 3_600.0
Hold = Callable[[str], AbstractContextManager[Any]]


def make_scheduler(
    graph: Graph,
    *,
    checkpointer: BaseCheckpointSaver[Any],
    store: BaseStore,
    only: Collection[str] | None = None,
    hold: Hold | None = None,
    threads: bool = False,
) -> ReflectionScheduler:
    """A scheduler that reviews sessions of a graph and reflects upon them; not started.

    Args:
        graph: The compiled session graph, by whose roles, storage and settings it goes.
        checkpointer: Has the checkpoints of the graph's sessions.
        store: Keeps facts, marks and leases; the same for all processes that share the sessions.
        only: The sessions that it looks after; all of the storage if not given.
        hold: Holds a session while a review changes it; the storage's own lock if not given.
        threads: True for a graph that is called in threads, not on the event loop.
    """
    deps = find_deps(graph)
    storage = deps.workspaces.choose_storage(store)
    options: dict[str, Any] = {"hold": hold or storage.lock}

    async def review(session: str) -> object:
        thread = name_thread(session)
        if threads:
            return await asyncio.to_thread(partial(review_session, graph, thread, **options))
        return await areview_session(graph, thread, **options)

    return reflect_beside(
        only=only,
        review=review,
        checkpointer=checkpointer,
        storage=storage,
        store=store,
        roles=deps.roles,
        policy=deps.settings.reflection,
    )


@asynccontextmanager
async def run_background(
    graph: Graph, *, checkpointer: BaseCheckpointSaver[Any], store: BaseStore
) -> AsyncIterator[ReflectionScheduler | None]:
    """Look after all sessions of a graph while a server runs; not if the settings say so.

    What is under way at the end is broken off: it is due again at the next start.
    """
    if not find_deps(graph).settings.background:
        yield None
        return
    scheduler = make_scheduler(graph, checkpointer=checkpointer, store=store)
    await scheduler.start()
    expiring = asyncio.create_task(_expire_hourly(graph), name="topicloom-expiry")
    try:
        yield scheduler
    finally:
        expiring.cancel()
        await asyncio.gather(expiring, return_exceptions=True)
        await scheduler.stop(wait=False)


async def _expire_hourly(graph: Graph) -> None:
    """End what is too old by the settings, in sessions in which nobody says anything just now."""
    deps = find_deps(graph)
    while deps.settings.retention.ends_anything:
        storage = deps.workspaces.choose_storage(graph.store)
        for name in await asyncio.to_thread(storage.sessions):
            try:
                async with _hold_turns(graph, name):
                    await aexpire_due(graph, name, silent_for=deps.settings.reflection.idle_seconds)
            except TopicLoomError as error:  # it is in use: the next hour comes
                _log.warning("what is too old in %r was not removed: %s", name, error)
        await asyncio.sleep(_HOUR)


def _hold_turns(graph: Graph, thread: str) -> AbstractAsyncContextManager[Any]:
    """Have turns of a session graph in this process wait."""
    if isinstance(graph, CompiledSessionGraph):
        return graph.builder.runs.ahold({"thread_id": thread})
    return nullcontext()
