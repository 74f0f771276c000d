"""activate_topic and amnesia: searches of all topics, for the main model and for the user."""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from topicloom.context.transcript import find_named_media
from topicloom.effects import Step
from topicloom.nodes.search import TopicSearch
from topicloom.nodes.step import Update, dump, emit, node, open_turn
from topicloom.state.channels import SessionState
from topicloom.state.recall import parse_message_number
from topicloom.state.session import Search, Session
from topicloom.storage.sessions import SessionStore

ACTIVATE_TOPIC = "activate_topic"


class ActivateTopic(BaseModel):
    """Look for an earlier topic of this conversation.

    Call it before any words when something is mentioned that you cannot see, and always when
    the user says that you forgot something or that it was said before.
    """

    query: str = Field(
        description="What to look for, in the user's words and language; or a line such as"
        " [image: m42], to see that image again."
    )
    when: str | None = Field(
        default=None, description='When it was talked about, if said: "last month", "上个月".'
    )
    include_archived: bool = Field(
        default=False, description="True only if the user asks for something long put away."
    )
    forgotten: bool = Field(
        default=False, description="True if the user holds that you forgot it, or was told before."
    )


def never_called(**arguments: object) -> str:
    """Stand for a tool that the session graph answers itself."""
    raise NotImplementedError("the session graph answers this call itself")


def make_activate_tool(answer: Callable[..., str] = never_called) -> BaseTool:
    """The tool as the main model sees it. What it asks for is done elsewhere."""
    return StructuredTool.from_function(
        answer,
        name=ACTIVATE_TOPIC,
        description=ActivateTopic.__doc__,
        args_schema=ActivateTopic,
        infer_schema=False,
    )


def activate_topic(search: TopicSearch) -> Runnable[SessionState, Update]:
    """The node that makes the search that the model asked for."""
    return _search_node(search, "activate_topic")


def amnesia(search: TopicSearch) -> Runnable[SessionState, Update]:
    """The node that searches deeply where the user says that something was forgotten."""
    return _search_node(search, "amnesia")


def _search_node(search: TopicSearch, name: str) -> Runnable[SessionState, Update]:
    def step(state: SessionState) -> Step[Update]:
        session, turn, workspace = open_turn(search.deps.workspaces, state)
        assert turn.request is not None  # the wiring comes here only with a request
        if name == "amnesia":
            emit("remembering", query=turn.query)
        else:
            emit("searching", query=turn.request.query, when=turn.request.when)
            if media := _find_media(workspace.store, session, turn.request.query):
                found = Search(query=turn.request.query, media=media)
                update = {"searches": (*turn.searches, found), "request": None}
                return dump(turn=turn.model_copy(update=update))
        session, turn, calls = yield from search.search(workspace, session, turn)
        return {**dump(session, turn), "calls": calls}

    return node(step, name)


def _find_media(store: SessionStore, session: Session, query: str) -> tuple[str, ...]:
    """Short ids of the messages with media that a query names as `[image: m42]`."""
    numbers = map(parse_message_number, find_named_media(query))
    named = store.pick(session, (n for n in numbers if 1 <= n <= session.count))
    return tuple(message.id for message in named.values() if message.media)
