"""amnesia: the user says that something was forgotten, so all topics are searched."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.search import TopicSearch
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    emit,
    node,
    open_workspace,
)
from topicloom.state.channels import SessionState


def amnesia(search: TopicSearch) -> Runnable[SessionState, Update]:
    """The node that searches deeply, archived topics too if the user asks for what was said."""

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        assert turn.request is not None  # the wiring comes here only with a request
        emit("remembering", query=turn.query)
        workspace = open_workspace(search.deps.workspaces, session)
        session, turn, calls = yield from search.search(
            workspace, session, turn, turn.request, deep=True
        )
        turn = turn.model_copy(update={"unread": tuple(session.active)})
        return {**dump(session, turn), "calls": calls}

    return node(step, "amnesia")
