"""Sessions of an application that has a domain: a document, planners, and graphs over them."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from sessions import thread

from topicloom import (
    PLANNER,
    Answer,
    Domain,
    LocalRole,
    PlanRequest,
    Roles,
    Settings,
    TurnPlan,
    build_session_graph,
)
from topicloom.domain.planner import EmbeddedPlanner
from topicloom.hosting import Graph
from topicloom.testing import Clock, fake_roles, make_tool_call

CONFIG = thread()
SWORD = "item_sword_01.count"
"""The path of the count of swords, of which the document has one."""
SET_3 = ("SET", SWORD, 3)


def editing(*edits: Any, text: str = "") -> list[AIMessageChunk]:
    """A reply that calls `edit_state`, after some text."""
    return make_tool_call("edit_state", {"edits": [list(e) for e in edits]}, text=text)


def count_of(state: dict[str, Any]) -> int:
    """How many swords there are."""
    count: int = state["document"]["inventory"]["main_bag"]["items"][0]["count"]
    return count


def the_document() -> dict[str, Any]:
    """A document with entities, containers, events and plain fields."""
    return copy.deepcopy(_DOCUMENT)


_DOCUMENT: dict[str, Any] = {
    "health": 85,
    "location": "forest",
    "inventory": {
        "main_bag": {
            "_anchor": "bag_main",
            "items": [
                {"id": "item_sword_01", "name": "Iron Sword", "count": 1},
                {"id": "item_potion_02", "name": "Healing Potion", "count": 2},
                {"id": "item_lamp_03", "name": "灯笼", "count": 4},
            ],
        },
        "belt": {"slots": 3},
    },
    "tasks": [
        {"id": "t1", "title": "Pack the books", "status": "open", "priority": 2},
        {"id": "t2", "title": "Call the movers", "status": "completed", "priority": 1},
    ],
    "notes": ["the door is locked"],
    "events": [
        {"id": "q_001", "status": "in_progress", "objective": "Find the temple", "after": ["q_0"]},
        {"id": "q_002", "status": "in_progress", "objective": "Help the blacksmith"},
        {"id": "q_0", "status": "done", "objective": "Find the lost necklace"},
    ],
}


EDITS = (
    (r"Set the sword count to (\d+)", "SET", SWORD, 1),
    (r"increase the sword count by (\d+)", "INC", SWORD, 1),
    (r"把灯笼数量改成(\d+)", "SET", "item_lamp_03.count", 1),
    (r"把灯笼数量减(\d+)", "INC", "item_lamp_03.count", -1),
)


class SwordPlanner(EmbeddedPlanner):
    """Knows a few edits, as a model would."""

    def call(self, request: PlanRequest) -> Answer[TurnPlan]:
        for form, operation, path, sign in EDITS:
            if found := re.fullmatch(form, request.query):
                return Answer(edit_plan((operation, path, sign * int(found[1]))))
        return super().call(request)


@dataclass
class ScriptedPlanner(LocalRole[PlanRequest, TurnPlan]):
    """Plans as told, a plan a turn, and then in one way for ever."""

    script: list[TurnPlan | Exception] = field(default_factory=list)
    otherwise: TurnPlan = field(default_factory=TurnPlan)
    requests: list[PlanRequest] = field(default_factory=list)

    def call(self, request: PlanRequest) -> Answer[TurnPlan]:
        self.requests.append(request)
        plan = self.script.pop(0) if self.script else self.otherwise
        if isinstance(plan, Exception):
            raise plan
        return Answer(plan)


def edit_plan(*edits: tuple[Any, ...], reply: str = "") -> TurnPlan:
    """The plan of a turn that only changes the document."""
    return TurnPlan(kind="state_edit", edits=edits, reply=reply)


def open_domain(
    folder: Path,
    roles: Roles | None = None,
    *,
    planner: Any = None,
    domain: Domain | None = None,
    tools: Any = (),
    checkpointer: Any = None,
    storage: Any = None,
    instructions: str = "",
    **settings: Any,
) -> Graph:
    """A compiled session graph with a domain over a folder."""
    options = {"window": 4_000, "recall_tokens": 500, "fsync": False, **settings}
    roles = roles or fake_roles()
    return build_session_graph(
        settings=Settings.model_validate({"folder": folder, **options}),
        roles=roles.replace(PLANNER, planner or SwordPlanner()),
        tools=tools,
        instructions=instructions,
        clock=Clock(),
        storage=storage,
        domain=domain or Domain(),
    ).compile(checkpointer=checkpointer or InMemorySaver())


def say(
    graph: Graph,
    text: str,
    document: Any = None,
    *,
    config: RunnableConfig = CONFIG,
    id: str | None = None,
) -> dict[str, Any]:
    """One turn; returns the state after it."""
    given = {} if document is None else {"document": document}
    state: dict[str, Any] = graph.invoke({"messages": [HumanMessage(text, id=id)], **given}, config)
    return state


def reply_of(state: dict[str, Any]) -> str:
    """The last message of the `messages` channel."""
    return str(state["messages"][-1].content)
