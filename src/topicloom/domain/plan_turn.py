"""plan: what kind of turn is it, what is it about, and what is worth looking for?"""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.runnables import Runnable

from topicloom.domain.events import list_active_events
from topicloom.domain.planner import PLANNER, EmbeddedPlanner, PlanRequest, sanitize_plan
from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, current_plan, dump, dumped, node, open_turn
from topicloom.roles.calls import ask_first
from topicloom.state.channels import DomainState
from topicloom.state.plan import TurnPlan
from topicloom.state.receipt import Call

_TAIL = 6
"""Messages before the new one that a planner sees."""


def plan(deps: Deps, events: str, templates: Mapping[str, str]) -> Runnable[DomainState, Update]:
    """The node that has the turn planned; another planner stands in for one that fails."""
    planners = (*deps.roles.in_turn(PLANNER), EmbeddedPlanner())[:2]

    def step(state: DomainState) -> Step[Update]:
        session, turn, workspace = open_turn(deps.workspaces, state)
        document = state.get("document") or {}
        request = PlanRequest(
            session=session.id,
            query=turn.query,
            tail=workspace.store.messages(session, turn.first - _TAIL, turn.first - 1),
            document=document,
            events=list_active_events(document, events),
            templates=templates,
            previous=current_plan(state),
            language=session.language,
        )
        calls: list[Call] = []
        found = yield from ask_first("planner", planners, request, calls)
        made, _ = sanitize_plan(found or TurnPlan(), request)
        turn = turn.model_copy(update={"fast": made.kind == "state_edit"})
        return {
            **dump(turn=turn),
            "plan": made.model_dump(mode="json", exclude_defaults=True),
            "layers": None,
            "calls": dumped(calls),
        }

    return node(step, "plan")
