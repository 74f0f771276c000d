"""Routes of a turn between the nodes.

A route gives the label of an edge, as the picture of the graph shows it, and its branch says which
node the edge leads to. Edges to nodes that run beside the readers go by the names of the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from topicloom.domain.edit import EDIT_STATE
from topicloom.domain.state import DomainState
from topicloom.nodes.activate_topic import ACTIVATE_TOPIC
from topicloom.nodes.step import turn_options
from topicloom.state.channels import ReadTask, SessionState, TurnOptions
from topicloom.state.messages import find_edit_calls, find_other_calls
from topicloom.state.session import Session, Turn

GraphBuilder = StateGraph[Any, TurnOptions, Any, Any]
Next = str | list[str | Send]
Ends = dict[Hashable, str]
"""The node that each edge leads to, by the label of the edge."""
Branch = tuple[Callable[[Any], Next], Ends]
"""The route of the conditional edges from a node, and these."""

SETTLED = "nothing to settle"
UNSETTLED = "something to settle"
MESSAGE = "a message"
CHANGES = "changes of a review"
ALONE = "changes alone"
RECORDED = "only recorded"
FULL = "the window fills"
TOPICS = "there are topics"
NOTHING = "nothing to recall"
FORGOTTEN = "something was forgotten"
EACH = "each active topic"
EACH_NEW = "each new topic"
NONE = "nothing to read"
SEARCH = "a topic is missing"
TOOLS = "a tool"
REPLY = "the reply"
AGAIN = "the model takes less"
EDITS = "edits"
MADE = "made"
NOT_MADE = "not made"
RESULT = "their result"
_BEGINS: Ends = {SETTLED: "ingest", UNSETTLED: "reconcile"}


@dataclass(frozen=True, slots=True)
class Routes:
    """The decisions between the nodes."""

    begin_turn: Callable[[SessionState], bool]
    """Begins a turn; True if others left something to settle."""
    tools: bool = False
    streams: tuple[str, ...] = ()
    """Nodes that an application's domain adds beside the readers, the skeleton first; none where
    there is no domain, and so no planner."""

    def _branches(self) -> dict[str, Branch]:
        """The conditional edges, by the node that they start from."""
        streams: Ends = {name: name for name in self.streams}
        message: Ends = {MESSAGE: "estimate"}
        if streams:
            message = {MESSAGE: "plan", RECORDED: "estimate"}
        reply: Ends = {**(streams or {NOTHING: "main_generate"}), RECORDED: "finalize"}
        readers: Ends = {EACH: "read_topic", NONE: "assemble", **streams}
        called: Ends = {TOOLS: "tools"} if self.tools else {}
        edits: Ends = {EDITS: "edit"} if streams else {}
        branches: dict[str, Branch] = {
            "ingest": (self.after_ingest, {**message, CHANGES: "apply_changes"}),
            "apply_changes": (self.after_changes, {**message, ALONE: "finalize"}),
            "estimate": (self.after_estimate, {FULL: "split", TOPICS: "retrieve", **reply}),
            "split": (self.after_split, {TOPICS: "retrieve", RECORDED: "finalize", **streams}),
            "retrieve": (self.after_retrieve, {FORGOTTEN: "amnesia", **readers}),
            "amnesia": (self.after_amnesia, readers),
            "activate_topic": (self.after_activate, {EACH_NEW: "read_topic", NONE: "assemble"}),
            "main_generate": (
                self.after_generate,
                {SEARCH: "activate_topic", AGAIN: "estimate", REPLY: "finalize", **called, **edits},
            ),
        }
        if streams:
            branches["plan"] = (self.after_plan, {**edits, MESSAGE: "estimate"})
            made: Ends = {MADE: "finalize", NOT_MADE: "estimate"}
            branches["edit"] = (self.after_edit, {**made, RESULT: "main_generate", **called})
        return branches

    def connect(self, graph: GraphBuilder) -> None:
        """Add the edges of a session graph, whose nodes are in it."""
        self._add_branches(graph)
        if self.tools:
            graph.add_edge("tools", "main_generate")
        graph.add_conditional_edges(START, self.begin, _BEGINS)
        graph.add_edge("finalize", END)

    def connect_memory(self, graph: GraphBuilder) -> None:
        """Add the edges of the part of one that comes before the reply."""
        self._add_branches(graph)
        begins: Ends = {SEARCH: "activate_topic", **_BEGINS}
        graph.add_conditional_edges(START, self.resume, begins)

    def _add_branches(self, graph: GraphBuilder) -> None:
        """The edges between the nodes of a graph; those to one that it lacks lead to its end."""
        for node, (route, ends) in self._branches().items():
            if node in graph.nodes:
                there = {label: end if end in graph.nodes else END for label, end in ends.items()}
                graph.add_conditional_edges(node, route, there)
        graph.add_edge("reconcile", "ingest")
        for name in ("read_topic", *self.streams):
            graph.add_edge(name, "assemble")
        graph.add_edge("assemble", "main_generate" if "main_generate" in graph.nodes else END)

    def begin(self, state: SessionState) -> str:
        """To what others left, if there is anything; else to the message."""
        return UNSETTLED if self.begin_turn(state) else SETTLED

    def resume(self, state: SessionState) -> str:
        """To the search that the model asked for, or to the conversation."""
        return SEARCH if (state.get("turn") or {}).get("request") else self.begin(state)

    def after_ingest(self, state: SessionState) -> str:
        """To the changes that a review passed in, to the planner, or on."""
        return CHANGES if turn_options().changes_topics else self._message(state)

    def after_changes(self, state: SessionState) -> str:
        """On, if there was a message beside the changes."""
        said = state["turn"].get("said", True)
        return self._message(state) if said or _answers(state) else ALONE

    def _message(self, state: SessionState) -> str:
        """On; by way of the planner, if there is one and the turn answers."""
        return MESSAGE if not self.streams or _answers(state) else RECORDED

    def after_plan(self, state: DomainState) -> str:
        """The fast path, if the planner gave the edits with the plan."""
        return EDITS if state["turn"].get("fast") and state["plan"].get("edits") else MESSAGE

    def after_estimate(self, state: SessionState) -> Next:
        """To the split, if the window fills; else to what the reply needs."""
        if state["turn"].get("plan"):
            return FULL
        if not _answers(state) or state["turn"].get("fast"):
            return self.after_split(state)
        # Until the first split there is nothing to recall: one model call, as in any chat. And
        # where tools of the caller's ran for a message, its note is in the prompt already. A user
        # may have said something in other threads.
        recalls = state["session"].get("topics") or state["session"].get("user_id")
        if recalls and state["turn"].get("user", 0) >= state["turn"].get("first", 0):
            return self.after_split(state)
        return list(self.streams) or NOTHING

    def after_split(self, state: SessionState) -> str:
        """To what the reply needs, if there will be one."""
        if not _answers(state):
            return RECORDED
        return "skeleton" if state["turn"].get("fast") else TOPICS

    def after_retrieve(self, state: SessionState) -> Next:
        """To a search of all topics, if something was forgotten; else to the readers."""
        return FORGOTTEN if state["turn"].get("request") else self.after_amnesia(state)

    def after_amnesia(self, state: SessionState) -> Next:
        """To the readers of all topics that have to be read, and to the domain's streams."""
        return [*_readers(state), *self.streams] or NONE

    def after_activate(self, state: SessionState) -> Next:
        return [*_readers(state)] or NONE

    def after_generate(self, state: SessionState) -> str:
        """To what the model called for, or to the end."""
        if state["turn"].get("request"):
            return SEARCH
        last = state["messages"][-1]
        if not isinstance(last, AIMessage):
            return AGAIN
        if self.streams and find_edit_calls(last, EDIT_STATE):
            return EDITS
        callers = turn_options().tool_names
        ends = not self.tools or any(call["name"] in callers for call in last.tool_calls)
        return TOOLS if last.tool_calls and not ends else REPLY

    def after_edit(self, state: DomainState) -> Next:
        """On as usual, if a planner's edits could not be made; back to the model; or to the end."""
        turn, last = state["turn"], state["messages"][-1]
        if turn.get("rejected") and not (turn.get("attempts") or turn.get("edited")):
            return NOT_MADE
        if not isinstance(last, ToolMessage):
            return MADE
        if not self.tools:
            return RESULT
        asked = next(m for m in reversed(state["messages"]) if isinstance(m, AIMessage))
        # Calls of the application's tools may come together with edits.
        calls = find_other_calls(asked, EDIT_STATE, ACTIVATE_TOPIC)
        return [Send("tools", calls)] if calls else RESULT


def _answers(state: SessionState) -> bool:
    """True if the turn answers; otherwise it only records."""
    return bool(state["turn"].get("answer", True))


def _readers(state: SessionState) -> list[Send]:
    turn = Turn.model_validate(state["turn"])
    session = Session.model_validate(state["session"]).for_readers()
    seen = session.model_dump(mode="json", exclude_defaults=True)
    task = ReadTask(
        topics=(),
        others=False,
        session=seen,
        lookup=turn.lookup.model_dump(mode="json", exclude_defaults=True),
        search=len(turn.searches),
    )
    tasks = [{**task, "topics": topics} for topics in turn.unread]
    if turn.reads_others:
        active = state["session"].get("active", ())
        known = (*chain.from_iterable(turn.unread), *active)
        tasks.append({**task, "topics": known, "others": True})
    return [Send("read_topic", task) for task in tasks]
