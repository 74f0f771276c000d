"""Checking a stored session, and making anew what the transcript still tells, in any storage."""

from __future__ import annotations

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from topicloom.errors import StorageError, StorageUnavailableError
from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.memory.stored import Graph, find_deps, find_storage, get_session, save_session
from topicloom.nodes.catch_up import show_newest
from topicloom.state.session import Session
from topicloom.storage.base import Storage
from topicloom.storage.log import SessionLog
from topicloom.storage.repair import Fault, find_faults, mend_session
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import find_newest, gather, publish_mended


def check_session(graph: Graph, config: RunnableConfig) -> list[Fault]:
    """Find the faults of a session: reads all that is stored of it, and changes nothing.

        check_session(graph, thread)

    Args:
        graph: The compiled session graph, or an agent with `TopicMiddleware`.
        config: Names the thread, and a checkpoint if an older one is meant.

    Returns:
        An entry for each fault; none for a session that is whole, or that does not exist.
    """
    try:
        session, store, lost = _open_anew(graph, config, find_storage(graph))
        return lost or find_faults(session, store)
    except (StorageError, StorageUnavailableError) as error:
        return [Fault("session", str(error))]


def repair_session(graph: Graph, config: RunnableConfig) -> list[Fault]:
    """Make anew what is broken and can be; nothing that is stored is removed or changed.

    A session graph's thread without checkpoints goes on from what was stored last. A turn that
    failed of what is broken ends here; what it had said is taken in with the next. Killed
    anywhere, the same call finishes. Call it while no turn of the thread runs.

    Args:
        graph: The compiled session graph, or an agent with `TopicMiddleware`.
        config: Names the thread.

    Returns:
        What was wrong. A fault without a `mend` is still there.

    Raises:
        StorageError: The transcript is damaged: all else is made of it.
        SessionBusyError: Another process holds the session.
    """
    storage = find_storage(graph)
    with storage.lock(get_session(graph, config).id):
        session, store, faults = _open_anew(graph, config, storage)
        shown = list[AnyMessage]()
        if any(fault.mend for fault in faults):
            session = gather(store, session.id).model_copy(update={"shown": 0})
            shown = show_newest(store, session, find_deps(graph).settings.visible_messages)
        faults += find_faults(session, store)
        if any(fault.mend for fault in faults):
            mended = mend_session(session, store, faults)
            save_session(graph, config, mended, shown)
            publish_mended(store, mended)  # the next turn goes on from what was mended
    return faults


def _open_anew(
    graph: Graph, config: RunnableConfig, storage: Storage
) -> tuple[Session, SessionStore, list[Fault]]:
    """A session, its store, and the fault that it has lost its checkpoints, if it has.

    The store has nothing in memory yet: what is stored is read.
    """
    session = get_session(graph, config)
    store = SessionStore(SessionLog(storage.backend(session.id)))
    if session.count or session.id not in storage.sessions():
        return session, store, []
    known = isinstance(graph, CompiledSessionGraph) and find_newest(store, session.id).count
    mend = "goes on from what was stored last" if known else ""
    return session, store, [Fault("checkpoints", "there is none of this session", mend)]
