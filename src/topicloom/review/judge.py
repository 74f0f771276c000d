"""judge: decides the changes; and apply: makes them."""

from __future__ import annotations

from datetime import datetime

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.step import Update, node
from topicloom.review.channels import ReviewState
from topicloom.review.decisions import (
    Assessment,
    ReviewFindings,
    TopicPair,
    TopicStats,
    decide_changes,
)
from topicloom.review.session_client import ReviewDeps
from topicloom.state.changes import TopicChange, describe_change
from topicloom.state.session import Session


def judge(deps: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that decides the changes, without asking a role."""

    def step(state: ReviewState) -> Update:
        session = Session.model_validate(state["session"])
        table = deps.open_store(session.id).topic_table(session)
        found = ReviewFindings(
            looks=tuple(TopicStats.model_validate(row) for row in state["looks"]),
            assessed={r["topic"]: Assessment.model_validate(r) for r in state["assessed"]},
            pairs=tuple(TopicPair.model_validate(row) for row in state["pairs"]),
            near=state["near"],
        )
        changes = decide_changes(table, found, datetime.fromisoformat(state["now"]), deps.policy)
        return {
            "changes": [c.model_dump(mode="json") for c in changes],
            "told": [describe_change(c, table) for c in changes],
        }

    return node(step, "judge")


def apply(deps: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that changes the session; run again, it finds everything done."""

    def step(state: ReviewState) -> Step[Update]:
        changes = [TopicChange.model_validate(row) for row in state["changes"]]
        turn = yield from deps.client.apply_changes(state["thread"], changes)
        if turn is None:
            return {"refused": {c.topic: "a turn of the session is not finished" for c in changes}}
        return {"changed": list(turn.changed), "refused": dict(turn.refused)}

    return node(step, "apply")
