"""apply: have a turn of the session make the changes, as far as they still fit."""

from __future__ import annotations

from langchain_core.runnables import Runnable, RunnableLambda

from topicloom.nodes.review.desk import ReviewDesk
from topicloom.nodes.step import Update
from topicloom.state.changes import TopicChange
from topicloom.state.review_channels import ReviewState
from topicloom.state.session import Turn


def apply(desk: ReviewDesk) -> Runnable[ReviewState, Update]:
    """The node that changes the session. Run again, it finds everything done."""

    def sync(state: ReviewState) -> Update:
        changes = _changes(state)
        return _outcome(changes, desk.door.change(state["thread"], changes))

    async def asynchronous(state: ReviewState) -> Update:
        changes = _changes(state)
        return _outcome(changes, await desk.door.achange(state["thread"], changes))

    return RunnableLambda(sync, asynchronous, name="apply")


def _changes(state: ReviewState) -> list[TopicChange]:
    return [TopicChange.model_validate(row) for row in state["changes"]]


def _outcome(changes: list[TopicChange], turn: Turn | None) -> Update:
    if turn is None:
        return {"refused": {c.topic: "a turn of the session is not finished" for c in changes}}
    return {"changed": list(turn.changed), "refused": dict(turn.refused)}
