"""The application's own tools, in a session graph."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any

from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from topicloom.errors import TopicLoomWarning
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import open_turn, publish_on_failure


def make_tool_node(deps: Deps, channels: Collection[str]) -> ToolNode:
    """The node that runs tools; it warns of what a `Command` of one would set in no channel.

    What was said is kept, too, where one of them raises.
    """

    def keep(state: Any) -> AbstractContextManager[None]:
        session, _, workspace = open_turn(deps.workspaces, state)
        return publish_on_failure(workspace.store, session)

    def check(name: str, result: Any) -> Any:
        update = result.update if isinstance(result, Command) and not result.graph else None
        if lost := sorted(set(update) - set(channels)) if isinstance(update, Mapping) else []:
            warnings.warn(
                f"tool {name!r} sets {lost[0]!r}, which the session has no channel for: name it in"
                " build_session_graph(state_schema=...)",
                TopicLoomWarning,
                stacklevel=2,
            )
        return result

    def run(request: ToolCallRequest, call: Callable[[ToolCallRequest], Any]) -> Any:
        with keep(request.state):
            return check(request.tool_call["name"], call(request))

    async def arun(
        request: ToolCallRequest, call: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        with keep(request.state):
            return check(request.tool_call["name"], await call(request))

    return ToolNode(list(deps.window.tools), wrap_tool_call=run, awrap_tool_call=arun)
