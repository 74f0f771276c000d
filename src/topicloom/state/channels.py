"""The channels of the graph."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages


def collect(
    old: list[dict[str, Any]] | None, new: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    """Reducer of what parallel nodes hand in: appends, and starts afresh on None."""
    return [] if new is None else [*(old or ()), *new]


class SessionState(TypedDict, total=False):
    """State of the session graph. All but `messages` is JSON-native and of bounded size."""

    messages: Annotated[list[AnyMessage], add_messages]
    """The newest messages of the conversation; older ones are in storage."""
    session: dict[str, Any]
    """The session's core, a dumped `Session`."""
    turn: dict[str, Any]
    """The turn's working data, a dumped `Turn`."""
    readings: Annotated[list[dict[str, Any]], collect]
    """Dumped `Reading`s of this turn."""
    calls: Annotated[list[dict[str, Any]], collect]
    """Dumped `Call`s of this turn."""


class SessionInput(TypedDict):
    """What an application passes in."""

    messages: Annotated[list[AnyMessage], add_messages]
    """The new message, or several; older ones need not be passed again."""


class ReadTask(TypedDict):
    """What one reader is sent."""

    topic: str
    """Id of the topic."""
    session: dict[str, Any]
    """What a reader has to know of the session, a dumped `Session`."""
    query: str
    """What to answer, with references resolved."""
