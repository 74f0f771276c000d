"""recall: which sleeping topics does the message wake?"""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable

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
from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.roles.calls import Step
from topicloom.state.activation import Activation, ActivationPolicy, admit
from topicloom.state.channels import SessionState
from topicloom.state.session import SearchRequest, Session, Turn


def recall(
    *, workspaces: Workspaces, desk: SearchDesk, activation: ActivationPolicy
) -> Runnable[SessionState, Update]:
    """The node that wakes topics: by the index's prior, deeply if the user says "you forgot"."""

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(workspaces, session)
        result = _by_prior(workspace, session, turn, activation)
        session = session.model_copy(update={"active": result.active})
        turn = turn.model_copy(
            update={
                "woken": (*turn.woken, *result.woken),
                "slept": (*turn.slept, *result.slept),
                "unread": tuple(result.active),
            }
        )
        calls: list[dict[str, Any]] = []
        if turn.amnesia:
            emit("remembering", query=turn.query)
            session, turn, calls = yield from desk.search(
                workspace, session, turn, SearchRequest(query=turn.query), deep=True
            )
            turn = turn.model_copy(update={"unread": tuple(session.active)})
        return dump(session, turn) | ({"calls": calls} if calls else {})

    return node(step, "recall")


def _by_prior(
    workspace: Workspace, session: Session, turn: Turn, policy: ActivationPolicy
) -> Activation:
    roster = workspace.store.roster(session)
    hits = workspace.indexed(roster).search(turn.query)
    asleep = {t.id for t in roster.open()} - session.active.keys()
    return admit(session.active, {t: s for t, s in hits.topics.items() if t in asleep}, policy)
