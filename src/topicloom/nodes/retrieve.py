"""retrieve: which dormant topics does the message wake?"""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.index.time_expressions import asked_for
from topicloom.nodes.deps import Deps
from topicloom.nodes.search import wake
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    node,
    open_workspace,
)
from topicloom.nodes.workspace import Workspace
from topicloom.state.channels import SessionState
from topicloom.state.session import SearchRequest, Session, Turn


def retrieve(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that wakes topics by what the index finds in them.

    If the user says that something was forgotten, or asks for what was said before, it wants a
    search of all topics as well.
    """

    def step(state: SessionState) -> Update:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(deps.workspaces, session)
        priors = _of_open(workspace, session, turn)
        policy = deps.settings.activation
        session, turn = wake(workspace.store, session, turn, priors, policy)
        request = asked_for(turn.query, deps.clock())
        if request is None and turn.amnesia:
            request = SearchRequest(query=turn.query)
        if not session.topics:
            request = None  # there is nothing to search
        update = {"unread": tuple(session.active), "request": request}
        return dump(session, turn.model_copy(update=update))

    return node(step, "retrieve")


def _of_open(workspace: Workspace, session: Session, turn: Turn) -> dict[str, float]:
    """What the index says of the topics that are not archived."""
    table = workspace.store.topic_table(session)
    hits = workspace.indexed(table).search(turn.query)
    return {t.id: hits.topics[t.id] for t in table.open() if t.id in hits.topics}
