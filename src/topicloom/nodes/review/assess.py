"""assess: have one topic summed up and rated; many of these run side by side."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.nodes.review.desk import ReviewDesk
from topicloom.nodes.step import Update, dumped, node
from topicloom.review.reviewer import REVIEWER, ReviewRequest
from topicloom.roles.calls import ask_either
from topicloom.roles.registry import Roles
from topicloom.state.receipt import Call
from topicloom.state.review import Assessment
from topicloom.state.review_channels import AssessTask
from topicloom.state.session import Session


def assess(desk: ReviewDesk) -> Runnable[AssessTask, Update]:
    """The node that reviews one topic. If nobody can, that topic goes without."""

    def step(task: AssessTask) -> Step[Update]:
        session = Session.model_validate(task["session"])
        store = desk.store(session.id)
        topic = store.roster(session)[task["topic"]]
        try:
            records = store.topic_records(topic)
        except StorageError as error:
            return {"troubles": [f"{topic.id} cannot be read: {error}"]}
        request = ReviewRequest(session.id, topic, records, session.language, task["uses"])
        calls: list[Call] = []
        found = yield from assessed(desk.roles, request, calls)
        rows = [{"topic": topic.id, **found.model_dump(mode="json")}] if found else []
        return {"assessed": rows, "calls": dumped(calls)}

    return node(step, "assess")


def assessed(roles: Roles, request: ReviewRequest, calls: list[Call]) -> Step[Assessment | None]:
    """What the reviewer says, or its stand-in; what was called is added to `calls`."""
    reviewers = roles.in_turn(REVIEWER)
    found = yield from ask_either("reviewer", reviewers, request, calls, request.topic.id)
    if found is None:
        return None
    return found.model_copy(update={"importance": min(1.0, max(0.0, found.importance))})
