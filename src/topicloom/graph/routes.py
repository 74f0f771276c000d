"""Where a turn goes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import Send

from topicloom.nodes.activate import ACTIVATE_TOPIC
from topicloom.nodes.admit import is_refused
from topicloom.nodes.edit import calls_of, other_calls
from topicloom.nodes.step import turn_options
from topicloom.state.channels import DomainState, ReadTask, SessionState
from topicloom.state.plan import Plan
from topicloom.state.session import Session, Turn

Next = str | list[str | Send]


@dataclass(frozen=True, slots=True)
class Routes:
    """The decisions between the nodes."""

    tools: bool = False
    """Whether the application has tools of its own."""
    streams: tuple[str, ...] = ()
    """Nodes that an application's domain adds beside the readers, the skeleton first; none where
    there is no domain, and so no planner."""

    def begin(self, state: DomainState) -> str:
        """To the conversation, unless a document came that cannot be used."""
        return "decline" if is_refused(state.get("document") or {}) else "perceive"

    def after_perceive(self, state: SessionState) -> str:
        """To the changes that a review passed in, to the planner, or on."""
        return "maintain" if turn_options().changes else self._plan(state)

    def after_maintain(self, state: SessionState) -> str:
        """On, if there was a message beside the changes."""
        turn = Turn.model_validate(state["turn"])
        return self._plan(state) if turn.said or turn.answer else "settle"

    def _plan(self, state: SessionState) -> str:
        return "plan" if self.streams and state["turn"].get("answer", True) else "estimate"

    def after_plan(self, state: DomainState) -> str:
        """The fast path, if the planner gave the edits with the plan."""
        turn, plan = Turn.model_validate(state["turn"]), Plan.model_validate(state["plan"])
        return "edit" if turn.fast and plan.edits else "estimate"

    def after_estimate(self, state: SessionState) -> Next:
        """To the split, if the window fills; else to what the reply needs."""
        if state["turn"].get("plan"):
            return "split"
        return self._gather(state) if state["turn"].get("answer", True) else "settle"

    def after_split(self, state: SessionState) -> Next:
        """To what the reply needs, if there will be one."""
        return self._gather(state) if state["turn"].get("answer", True) else "settle"

    def _gather(self, state: SessionState) -> Next:
        if state["turn"].get("fast"):
            return "skeleton"
        if state["session"].get("topics"):
            return "recall"
        # Until the first split there is nothing to recall: one model call, as in any chat.
        return list(self.streams) or "generate"

    def after_recall(self, state: SessionState) -> Next:
        """To one reader for each topic that has to be read, and to the domain's streams."""
        return [*_readers(state), *self.streams] or "assemble"

    def after_activate(self, state: SessionState) -> Next:
        """To one reader for each topic that woke."""
        return [*_readers(state)] or "assemble"

    def after_generate(self, state: SessionState) -> str:
        """To what the model called for, or to the end."""
        if state["turn"].get("request"):
            return "activate"
        last = state["messages"][-1]
        if self.streams and calls_of(last):
            return "edit"
        return "tools" if getattr(last, "tool_calls", None) else "settle"

    def after_edit(self, state: DomainState) -> Next:
        """On as usual, if a planner's edits could not be made; back to the model; or to the end."""
        turn, last = Turn.model_validate(state["turn"]), state["messages"][-1]
        if turn.rejected and not turn.attempts and not turn.edited:
            return "estimate"
        if not isinstance(last, ToolMessage):
            return "settle"
        calls = _application_calls(state["messages"]) if self.tools else []
        return [Send("tools", calls)] if calls else "generate"


def _readers(state: SessionState) -> list[Send]:
    turn = Turn.model_validate(state["turn"])
    session = Session.model_validate(state["session"]).for_readers()
    seen = session.model_dump(mode="json", exclude_defaults=True)
    days = turn.searches[-1].days if turn.searches else None
    tasks = [ReadTask(topic=t, session=seen, query=turn.query, days=days) for t in turn.unread]
    return [Send("read_topic", task) for task in tasks]


def _application_calls(messages: list[Any]) -> list[dict[str, Any]]:
    """Calls of the application's tools that came together with edits."""
    asked: BaseMessage = next(m for m in reversed(messages) if isinstance(m, AIMessage))
    return [call for call in other_calls(asked) if call["name"] != ACTIVATE_TOPIC]
