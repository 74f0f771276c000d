"""apply: have a turn of the session make the changes, as far as they still fit."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.review.desk import ReviewDesk
from topicloom.nodes.step import Update, node
from topicloom.state.changes import TopicChange
from topicloom.state.review_channels import ReviewState


def apply(desk: ReviewDesk) -> Runnable[ReviewState, Update]:
    """The node that changes the session. Run again, it finds everything done."""

    def step(state: ReviewState) -> Step[Update]:
        changes = [TopicChange.model_validate(row) for row in state["changes"]]
        turn = yield from desk.door.change(state["thread"], changes)
        if turn is None:
            return {"refused": {c.topic: "a turn of the session is not finished" for c in changes}}
        return {"changed": list(turn.changed), "refused": dict(turn.refused)}

    return node(step, "apply")
