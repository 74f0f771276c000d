"""A session as its newest checkpoint and its storage have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from topicloom.errors import InputError
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import dump
from topicloom.state.channels import TurnOptions
from topicloom.state.session import Session
from topicloom.storage.base import Storage
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import catch_up

Graph = CompiledStateGraph[Any, TurnOptions, Any, Any]
"""A compiled session graph."""


def find_deps(graph: Graph) -> Deps:
    """The collaborators of a session graph, of an agent with `TopicMiddleware`, or of a graph that
    has one of these as a part.

    Raises `InputError` for any other graph.
    """
    for part in (graph, *(part for _, part in graph.get_subgraphs(recurse=True))):
        if isinstance(part, CompiledStateGraph):
            for _, deps in _find_owners(part):
                return deps
    raise InputError(
        "this is no session graph, no agent with TopicMiddleware, and has none as a part:"
        " Memory(storage, thread_id) needs none"
    )


def is_part(graph: Graph) -> bool:
    """True if the session graph or agent is only a part of a graph, or was compiled to be one."""
    return graph.checkpointer is True or not _find_owners(graph)


def find_storage(graph: Graph) -> Storage:
    """The storage of a session graph or an agent; see `find_deps`, and `Workspaces.open`."""
    return find_deps(graph).workspaces.choose_storage(graph.store)


def _find_owners(graph: Graph) -> list[tuple[str, Deps]]:
    """The collaborators of a graph, and of the hooks of a middleware, by the names of the nodes.

    An agent does not say which middleware it has: a hook in a node is a method of it.
    `tests/graph/test_what_langgraph_is_like.py` says if it is no more.
    """
    hooks = ((n, getattr(node.runnable, "func", None)) for n, node in graph.builder.nodes.items())
    owners = [
        ("", graph.builder),
        *((name, getattr(hook, "__self__", None)) for name, hook in hooks),
    ]
    made = ((name, getattr(owner, "deps", None)) for name, owner in owners)
    return [(name, deps) for name, deps in made if isinstance(deps, Deps)]


def save_session(
    graph: Graph, config: RunnableConfig, session: Session, shown: Sequence[BaseMessage] = ()
) -> None:
    """Put a session into a new checkpoint of its thread, between two turns.

    With an update of the `messages` channel: what it is to show as well, or not any more.
    """
    agent, update = graph.get_state(config).values.get("topicloom"), dump(session)
    last, _ = _find_owners(graph)[-1]
    if not last:
        graph.update_state(config, {**update, "messages": shown}, as_node="finalize")
    else:
        own_state = {"topicloom": {**agent, **update}} if agent is not None else {}
        graph.update_state(config, {**own_state, "messages": shown}, as_node=last)


def get_session(graph: Graph, config: RunnableConfig) -> Session:
    """The session that a thread's newest checkpoint holds; an empty one for a new thread.

    Args:
        graph: The compiled session graph.
        config: Names the thread, and a checkpoint if an older one is meant.
    """
    values = graph.get_state(config).values
    known = values.get("topicloom") or values  # an agent's, or a session graph's
    return Session.model_validate(
        known.get("session") or {"id": config["configurable"]["thread_id"]}
    )


def open_session(graph: Graph, config: RunnableConfig) -> tuple[Session, SessionStore]:
    """A session, and the store that reads its messages, topics, notes and receipts.

    It is as the next turn finds it: behind what other writers did since its newest checkpoint.

        session, store = open_session(graph, thread)
        store.receipts(session, newest=3)

    Args:
        graph: The compiled session graph.
        config: Names the thread, and a checkpoint if an older one is meant.
    """
    session = get_session(graph, config)
    store = SessionStore(find_storage(graph).open(session.id), watching=True)
    named = "checkpoint_id" in config["configurable"]
    return session if named else catch_up(store, session), store
