"""Deleting a thread with its session: checkpoints, all that is stored, and facts."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from topicloom.effects import Step, arun_step, either, run_step
from topicloom.graph.purge import compact_file
from topicloom.graph.stored import Graph, find_deps, make_review_thread
from topicloom.reflection.store import ReflectionStore

Saver = TypeVar("Saver", bound=BaseCheckpointSaver[Any])


def delete_session(graph: Graph, thread_id: str) -> None:
    """Delete a session for good: its thread's checkpoints, what is stored of it, and its facts.

    Killed on the way, the same call finishes; there need not be such a session. Call it while no
    turn of the thread runs. Copies of the thread share what is stored, and lose it.

    Args:
        graph: The compiled session graph, or an agent with `TopicMiddleware`; facts are deleted
            from the store it was compiled with.
        thread_id: The thread.

    Raises:
        InputError: The graph is neither.
        StorageUnavailableError: Nothing can be removed from its storage, or it has none.
        SessionBusyError: Another process has held the session for too long.
    """
    run_step(delete_step(graph, thread_id))


async def adelete_session(graph: Graph, thread_id: str) -> None:
    """`delete_session` on the event loop."""
    await arun_step(delete_step(graph, thread_id))


def delete_with_threads(saver: Saver, graph: Graph) -> Saver:
    """The same checkpointer, which from now on deletes with a thread what is stored of its session.

    For LangGraph servers, where `threads.delete` reaches nothing but the checkpointer.

    Args:
        saver: The server's checkpointer, by the key `checkpointer` of `langgraph.json`.
        graph: The compiled session graph: of a storage of its own, or with the store that it has.
    """
    delete, adelete = saver.delete_thread, saver.adelete_thread

    def delete_thread(thread_id: str) -> None:
        _delete_stored(graph, thread_id)
        for name in (thread_id, make_review_thread(thread_id)):
            delete(name)
        _compact(saver)

    async def adelete_thread(thread_id: str) -> None:
        await asyncio.to_thread(_delete_stored, graph, thread_id)
        for name in (thread_id, make_review_thread(thread_id)):
            await adelete(name)
        await _compact_async(saver)

    vars(saver).update(delete_thread=delete_thread, adelete_thread=adelete_thread)
    return saver


def delete_step(graph: Graph, thread: str) -> Step[None]:
    """`delete_session` as a step."""
    _delete_stored(graph, thread)
    saver = graph.checkpointer
    if not isinstance(saver, BaseCheckpointSaver):
        return
    for name in (thread, make_review_thread(thread)):
        delete, adelete = partial(saver.delete_thread, name), partial(saver.adelete_thread, name)
        yield from either(delete, adelete)
    yield from either(lambda: _compact(saver), lambda: _compact_async(saver))


def _delete_stored(graph: Graph, thread: str) -> None:
    """Delete a session's storage and facts, with what this process has in memory of it."""
    find_deps(graph).workspaces.delete(thread, graph.store)
    if graph.store is not None:
        ReflectionStore(graph.store).delete(thread)


def _compact(saver: BaseCheckpointSaver[Any]) -> None:
    """Remove what deleted rows leave in a file of SQLite, if nobody else uses it."""
    if isinstance(saver, SqliteSaver):
        with saver.lock:
            compact_file(saver.conn)


async def _compact_async(saver: BaseCheckpointSaver[Any]) -> None:
    if isinstance(saver, AsyncSqliteSaver):
        async with saver.lock:
            with suppress(sqlite3.OperationalError):
                await saver.conn.execute("VACUUM")
                await saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        await asyncio.to_thread(_compact, saver)
