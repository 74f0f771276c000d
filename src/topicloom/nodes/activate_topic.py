"""activate_topic and amnesia: searches of all topics, for the main model and for the user."""

from __future__ import annotations

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from topicloom.effects import Step
from topicloom.nodes.search import TopicSearch
from topicloom.nodes.step import Update, dump, emit, node, open_turn
from topicloom.state.channels import SessionState

ACTIVATE_TOPIC = "activate_topic"


class ActivateTopic(BaseModel):
    """Look for an earlier topic of this conversation.

    Call it before any words when something is mentioned that you cannot see, and always when
    the user says that you forgot something or that it was said before.
    """

    query: str = Field(description="What to look for, in the user's words and language.")
    when: str | None = Field(
        default=None, description='When it was talked about, if said: "last month", "上个月".'
    )
    include_archived: bool = Field(
        default=False, description="True only if the user asks for something long put away."
    )


def make_activate_tool() -> BaseTool:
    """The tool as the main model sees it. The graph itself does what it asks for."""

    def never_called(query: str, when: str | None = None, include_archived: bool = False) -> str:
        raise NotImplementedError("the session graph answers activate_topic itself")

    return StructuredTool.from_function(
        never_called,
        name=ACTIVATE_TOPIC,
        description=ActivateTopic.__doc__,
        args_schema=ActivateTopic,
    )


def activate_topic(search: TopicSearch) -> Runnable[SessionState, Update]:
    """The node that makes the search that the model asked for."""

    def step(state: SessionState) -> Step[Update]:
        session, turn, workspace = open_turn(search.deps.workspaces, state)
        assert turn.request is not None  # the wiring comes here only with a request
        emit("searching", query=turn.request.query, when=turn.request.when)
        session, turn, calls = yield from search.search(workspace, session, turn, deep=turn.amnesia)
        return {**dump(session, turn), "calls": calls}

    return node(step, "activate_topic")


def amnesia(search: TopicSearch) -> Runnable[SessionState, Update]:
    """The node that searches deeply where the user says that something was forgotten."""

    def step(state: SessionState) -> Step[Update]:
        session, turn, workspace = open_turn(search.deps.workspaces, state)
        emit("remembering", query=turn.query)
        session, turn, calls = yield from search.search(workspace, session, turn, deep=True)
        turn = turn.model_copy(update={"unread": tuple(session.active)})
        return {**dump(session, turn), "calls": calls}

    return node(step, "amnesia")
