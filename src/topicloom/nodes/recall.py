"""recall: which sleeping topics does the message wake?"""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable

from topicloom.index.time_expressions import asked_for
from topicloom.nodes.search import SearchDesk
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    emit,
    node,
    open_workspace,
)
from topicloom.nodes.waking import wake
from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.roles.calls import Step
from topicloom.state.activation import ActivationPolicy
from topicloom.state.channels import SessionState
from topicloom.state.session import SearchRequest, Session, Turn


def recall(
    *, workspaces: Workspaces, desk: SearchDesk, activation: ActivationPolicy
) -> Runnable[SessionState, Update]:
    """The node that wakes topics.

    By the index's prior; deeply if the user says "you forgot"; archived ones too if the user asks
    for what was said before.
    """

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(workspaces, session)
        priors = _of_open(workspace, session, turn)
        session, turn = wake(workspace.store, session, turn, priors, activation)
        calls: list[dict[str, Any]] = []
        request = asked_for(turn.query, desk.clock())
        if request is None and turn.amnesia:
            request = SearchRequest(query=turn.query)
        if request is not None:
            emit("remembering", query=turn.query)
            session, turn, calls = yield from desk.search(
                workspace, session, turn, request, deep=True
            )
        turn = turn.model_copy(update={"unread": tuple(session.active)})
        return dump(session, turn) | ({"calls": calls} if calls else {})

    return node(step, "recall")


def _of_open(workspace: Workspace, session: Session, turn: Turn) -> dict[str, float]:
    """What the index says of the topics that are not archived."""
    roster = workspace.store.roster(session)
    hits = workspace.indexed(roster).search(turn.query)
    return {t.id: hits.topics[t.id] for t in roster.open() if t.id in hits.topics}
