"""Checking a stored session, and making anew what the transcript still tells, in any storage."""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig

from topicloom.errors import StorageError, StorageUnavailableError
from topicloom.graph.stored import Graph, get_session, save_session
from topicloom.storage.base import Storage
from topicloom.storage.lines import find_missing, find_rivals, publish
from topicloom.storage.repair import Fault, find_faults, mend_session
from topicloom.storage.sessions import SessionStore


def check_session(graph: Graph, config: RunnableConfig, storage: Storage) -> list[Fault]:
    """What is wrong with a session; reads all that is stored of it, and changes nothing.

        check_session(graph, thread, StoreStorage(store))

    Args:
        graph: The compiled session graph, or an agent with `TopicMiddleware`.
        config: Names the thread, and a checkpoint if an older one is meant.
        storage: The one that the graph was built with, or another over the same place.

    Returns:
        An entry for each fault; none for a session that is whole, or that does not exist.
    """
    try:
        session = get_session(graph, config)
        store = SessionStore(storage.open(session.id))
        if not session.count and session.id in storage.sessions():
            return [Fault("checkpoints", "there is none of this session")]
        return find_faults(session, store)
    except (StorageError, StorageUnavailableError) as error:
        return [Fault("session", str(error))]


def repair_session(graph: Graph, config: RunnableConfig, storage: Storage) -> list[Fault]:
    """Make anew what is broken and can be; nothing that is stored is removed or changed.

    A turn that failed of it ends here; what it had said is taken in with the next. Killed
    anywhere, the same call finishes. Call it while no turn of the thread runs.

    Args:
        graph: The compiled session graph, or an agent with `TopicMiddleware`.
        config: Names the thread.
        storage: The one that the graph was built with, or another over the same place.

    Returns:
        What was wrong. A fault without a `mend` is still there.

    Raises:
        StorageError: The transcript is damaged: all else is made of it.
        SessionBusyError: Another process holds the session.
    """
    session = get_session(graph, config)
    store = SessionStore(storage.open(session.id))
    with storage.lock(session.id):
        faults = find_faults(session, store)
        if any(fault.mend for fault in faults):
            mended = mend_session(session, store, faults)
            save_session(graph, config, mended)
            heads = find_rivals(store, mended)
            known = [h.ref for h in heads if not find_missing(store, h.session, mended)]
            publish(store, mended, known)  # the next turn goes on from what was mended
    return faults
