"""Facts about the user in a turn: chosen at a split, and shown in prompts."""

from __future__ import annotations

from langgraph.store.base import BaseStore

from topicloom.nodes.deps import Deps
from topicloom.nodes.step import graph_store, read_store
from topicloom.nodes.workspace import Workspace
from topicloom.state.facts import KnownFact, choose_facts
from topicloom.state.session import Session


def refresh_facts(deps: Deps, workspace: Workspace, session: Session) -> Session:
    """The session with the facts that its prompts show from now on, as long as the prefix lasts.

    They are the newest, and come to no more tokens than a turn may recall.
    """
    chosen = choose_facts(
        read_facts(deps, graph_store(), workspace, session),
        deps.window.counter.text,
        tokens=deps.window.recall,
        most=deps.settings.facts,
    )
    now = session.place(deps.clock()).isoformat(timespec="seconds") if session.user_id else ""
    return session.model_copy(update={"facts": chosen, "facts_chosen": now})


def read_facts(
    deps: Deps, kept: BaseStore | None, workspace: Workspace, session: Session
) -> dict[str, KnownFact]:
    """The facts that hold for the session, by key, the newest last."""
    if not deps.settings.facts:
        return {}
    found = read_store(
        kept, workspace, lambda store: deps.user.facts(store, workspace.store, session)
    )
    return dict(found or {})
