"""The planner as a chat model."""

from __future__ import annotations

from topicloom.context.asking import planner_messages
from topicloom.effects import Step
from topicloom.prompts.plans import parse_plan
from topicloom.roles.base import Answer
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import remark
from topicloom.roles.planning import PlanRequest
from topicloom.state.document import anchor_of
from topicloom.state.plan import Plan


class LLMPlanner(LLMRole[PlanRequest, Plan]):
    """Plans a turn; for a change of the document it gives the edits and the reply itself."""

    role = "planner"

    def step(self, request: PlanRequest) -> Step[Answer[Plan]]:
        """Plan the turn; a focus or template that does not exist is dropped."""
        prompt = planner_messages(
            request.query,
            request.tail,
            request.document,
            request.events,
            request.templates,
            request.language,
            self._chat.counter,
            self._chat.limit,
        )
        asked = yield from self.ask(request, "planner", prompt, parse_plan, "turn_plan")
        plan, remarks = _mended(asked.value, request)
        return Answer(plan, asked.usage, asked.remarks + remarks)


def _mended(plan: Plan, request: PlanRequest) -> tuple[Plan, tuple[str, ...]]:
    events = {anchor_of(event) for event in request.events}
    lost = [plan.focus] if plan.focus is not None and plan.focus not in events else []
    unknown = [plan.template] if plan.template not in request.templates else []
    kept = plan.model_copy(
        update={
            "focus": None if lost else plan.focus,
            "template": "default" if unknown else plan.template,
        }
    )
    return kept, (
        *remark(lost, "focus is no active event", "are no active events"),
        *remark(unknown, "template does not exist", "templates do not exist"),
    )
