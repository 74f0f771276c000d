"""plan: what kind of turn is it, what is it about, and what is worth looking for?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.runnables import Runnable

from topicloom.domain.document import Document, get_anchor, to_json_native
from topicloom.domain.events import DocumentEvent
from topicloom.domain.planner import Planner, PlanRequest
from topicloom.effects import Step
from topicloom.errors import InputError
from topicloom.nodes.step import (
    Update,
    current_plan,
    current_session,
    current_turn,
    dump,
    dumped,
    node,
    open_workspace,
)
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.calls import ask_role
from topicloom.state.channels import DomainState
from topicloom.state.plan import TurnPlan
from topicloom.state.receipt import Call

_TAIL = 6
"""Messages before the new one that a planner sees."""


def plan(
    *,
    workspaces: Workspaces,
    planner: Planner,
    fallback: Planner,
    events: Callable[[Document], list[DocumentEvent]],
    templates: Sequence[str],
) -> Runnable[DomainState, Update]:
    """The node that has the turn planned.

    Args:
        workspaces: Of this process.
        planner: Plans.
        fallback: Stands in for a planner that fails.
        events: Gives the active events of a document.
        templates: Names of the templates there are.
    """

    def step(state: DomainState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        store = open_workspace(workspaces, session).store
        document = state.get("document") or {}
        request = PlanRequest(
            session=session.id,
            query=turn.query,
            tail=store.records(session, turn.first - _TAIL, turn.first - 1),
            document=document,
            events=events(document),
            templates=templates,
            previous=current_plan(state),
            language=session.language,
        )
        made, calls = yield from _ask_planner(planner, fallback, request)
        made = sanitize_plan(made, request)
        turn = turn.model_copy(update={"fast": made.kind == "state_edit"})
        return {
            **dump(turn=turn),
            "plan": made.model_dump(mode="json", exclude_defaults=True),
            "layers": None,
            "calls": dumped(calls),
        }

    return node(step, "plan")


def _ask_planner(
    planner: Planner, fallback: Planner, request: PlanRequest
) -> Step[tuple[TurnPlan, list[Call]]]:
    calls: list[Call] = []
    for role in (planner, fallback):
        made, call = yield from ask_role("planner", role, request)
        calls.append(call)
        if made is not None:
            return made, calls
    return TurnPlan(), calls


def sanitize_plan(plan: TurnPlan, request: PlanRequest) -> TurnPlan:
    """The plan with a focus and a template that are there, and edits that can be stored."""
    known = {get_anchor(event) for event in request.events}
    edit = plan.kind == "state_edit"
    return plan.model_copy(
        update={
            "focus": plan.focus if plan.focus in known else None,
            "template": plan.template if plan.template in request.templates else "default",
            "search": plan.search.model_copy(update={"enabled": plan.search.enabled and not edit}),
            "edits": _keep_storable(plan) if edit else (),
            "reply": plan.reply if edit else "",
        }
    )


def _keep_storable(plan: TurnPlan) -> tuple[tuple[object, ...], ...]:
    """The edits, if JSON can hold them all; else none: they belong together."""
    try:
        return tuple(tuple(edit) for edit in to_json_native(plan.edits, "edits"))
    except InputError:
        return ()
