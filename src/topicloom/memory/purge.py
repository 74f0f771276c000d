"""Removing for good: messages of a thread, or all of it; from storage, and from checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from topicloom.effects import Step, both, either
from topicloom.errors import InputError
from topicloom.graph.purged_state import MADE_IN_A_TURN
from topicloom.memory.freed_pages import name_free_space, rewrite_files
from topicloom.memory.stored import Graph, find_deps
from topicloom.nodes.step import dump
from topicloom.reflection.store import ReflectionStore
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import REMOVED
from topicloom.storage.purging import PurgePlan
from topicloom.storage.sessions import SessionStore
from topicloom.storage.spending import delete_spent
from topicloom.storage.writers import catch_up
from topicloom.texts import FilledText

_NEWEST = "SELECT checkpoint_ns, MAX(checkpoint_id) FROM checkpoints WHERE thread_id = :thread"
_SQLITE = (
    *(
        f"DELETE FROM {table} WHERE thread_id = :thread AND (checkpoint_ns, checkpoint_id)"
        f" NOT IN ({_NEWEST} GROUP BY checkpoint_ns)"
        for table in ("writes", "checkpoints")
    ),
    "UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = :thread",
)


def purge_messages(
    store: SessionStore,
    graph: Graph,
    thread: RunnableConfig,
    plan: PurgePlan,
    first: Callable[[], object],
) -> Step[tuple[str, ...]]:
    """Within a step: remove messages from a session, and from the checkpoints of its thread.

    The newest checkpoint stays, without their texts, and the next turn goes on from it. Older ones
    go: from SQLite together with the pages that they leave free, from PostgreSQL, and from memory;
    other checkpointers keep them. Killed anywhere, the same call finishes, also with a plan that is
    empty by then. A turn that failed is closed.

    Args:
        store: The session's.
        graph: The compiled session graph.
        thread: Names the thread.
        plan: By `SessionStore.plan_purge`.
        first: What has to be done by the same plan: once messages are gone, a further call has
            another one.

    Returns:
        Where what was removed may still be found, a sentence each; empty where all of it is gone.

    Raises:
        InputError: A turn of the thread is not finished.
    """
    state = graph.get_state(thread)
    if state.next and not any(task.error for task in state.tasks):  # it may be running
        raise InputError("a turn of this session is not finished: finish it before you purge")
    first()
    store.purge(plan)
    _clear_newest(store, graph, thread)
    saver = graph.checkpointer
    left = _drop_older(saver, thread) if isinstance(saver, BaseCheckpointSaver) else ""
    pages = yield from rewrite_files(saver, graph.store)
    return tuple(filter(None, (left, *pages)))


def _clear_newest(store: SessionStore, graph: Graph, thread: RunnableConfig) -> None:
    """Put what is left of removed messages, and an empty turn, on top of the newest checkpoint."""
    values = graph.get_state(thread).values
    if "turn" not in values:
        return
    session = Session.model_validate(values["session"])
    said = store.messages(catch_up(store, session))
    removed = {m.source: m.message for m in said if m.text == REMOVED}
    turn = Turn.model_validate(values["turn"])
    session = session.model_copy(update={"purges": store.log.purges})
    update = dump(session, Turn(first=turn.first, user=turn.user, query="", answer=False))
    # A message that stood there with its old text would count as a new one.
    update["messages"] = [removed[m.id] for m in values["messages"] if m.id in removed]
    update |= {name: None for name in MADE_IN_A_TURN if name in values}
    graph.update_state(thread, update, as_node="finalize")


def _drop_older(saver: BaseCheckpointSaver[Any], thread: RunnableConfig) -> str:
    """Remove all checkpoints of a thread but the newest; returns what is left, "" for nothing."""
    name = thread["configurable"]["thread_id"]
    try:
        if isinstance(saver, SqliteSaver):
            _drop_in_sqlite(saver, name)
        elif isinstance(saver, InMemorySaver):
            _drop_in_memory(saver, thread)
        else:
            saver.prune([name], strategy="keep_latest")
    except NotImplementedError:
        return FilledText(
            "older checkpoints of the thread: {saver} cannot remove them; do so by its own means",
            saver=type(saver).__name__,
        )
    return ""


def _drop_in_sqlite(saver: SqliteSaver, name: str) -> None:
    with saver.cursor() as cursor:
        for statement in _SQLITE:
            cursor.execute(statement, {"thread": name})


def _drop_in_memory(saver: InMemorySaver, thread: RunnableConfig) -> None:
    newest: dict[str, CheckpointTuple] = {}
    for found in saver.list(thread):
        newest.setdefault(found.config["configurable"]["checkpoint_ns"], found)
    # Not its own method, if that deletes the session too.
    InMemorySaver.delete_thread(saver, thread["configurable"]["thread_id"])
    for space, kept in newest.items():
        config: RunnableConfig = {
            "configurable": {**thread["configurable"], "checkpoint_ns": space}
        }
        saver.put(config, kept.checkpoint, kept.metadata, kept.checkpoint["channel_versions"])


Saver = TypeVar("Saver", bound=BaseCheckpointSaver[Any])


def _delete_session(graph: Graph, thread_id: str) -> Step[None]:
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
    _delete_stored(graph, thread_id)
    if isinstance(saver := graph.checkpointer, BaseCheckpointSaver):
        yield from _delete_checkpoints(saver, thread_id)
    yield from rewrite_files(saver, graph.store)


delete_session, adelete_session = both(_delete_session)


def delete_with_threads(saver: Saver, graph: Graph) -> Saver:
    """The same checkpointer, which from now on deletes with a thread what is stored of its session.

    For LangGraph servers, where `threads.delete` reaches nothing but the checkpointer.

    Args:
        saver: The server's checkpointer, by the key `checkpointer` of `langgraph.json`.
        graph: The compiled session graph: of a storage of its own, or with the store that it has.
    """
    delete, adelete = saver.delete_thread, saver.adelete_thread

    def _delete_thread(thread_id: str) -> Step[None]:
        _delete_stored(graph, thread_id)
        yield from either(partial(delete, thread_id), partial(adelete, thread_id))
        yield from rewrite_files(saver, graph.store)

    delete_thread, adelete_thread = both(_delete_thread)
    # The server asks for a checkpointer of the type that it knows, and so do `isinstance` checks
    # here: another object around this one is none. tests/graph/test_what_langgraph_is_like.py
    vars(saver).update(delete_thread=delete_thread, adelete_thread=adelete_thread)
    return saver


def _delete_stored(graph: Graph, thread: str) -> None:
    """Delete a session's storage and facts, with what this process has in memory of it."""
    deps = find_deps(graph)
    with deps.telemetry.watch_memory("delete_memory_store", thread):
        deps.workspaces.delete(thread, graph.store)
        if graph.store is not None:
            ReflectionStore(graph.store).delete(thread)
            delete_spent(graph.store, "session", thread)


def delete_person(
    graph: Graph,
    user: str,
    threads: Sequence[str],
    hold: Callable[[str], AbstractContextManager[None]],
) -> Step[tuple[str, ...]]:
    """Within a step: delete sessions of a user for good; returns where bytes of them may be left.

    Of each its checkpoints go first: as long as these are there, what is stored says whose they
    are. Files of SQLite are written anew once, behind all of it.
    """
    saver, store = graph.checkpointer, graph.store
    for thread in threads:
        with hold(thread):
            if isinstance(saver, BaseCheckpointSaver):
                yield from _delete_checkpoints(saver, thread)
            _delete_stored(graph, thread)
    if store is not None:
        ReflectionStore(store).delete_person(user)
        delete_spent(store, "user", user)
    left = yield from rewrite_files(saver, store)
    return (*left, *name_free_space(saver, store))


def _delete_checkpoints(saver: BaseCheckpointSaver[Any], thread: str) -> Step[None]:
    delete, adelete = partial(saver.delete_thread, thread), partial(saver.adelete_thread, thread)
    yield from either(delete, adelete)
