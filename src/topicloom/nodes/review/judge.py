"""judge: what is to be changed, and why."""

from __future__ import annotations

from datetime import datetime

from langchain_core.runnables import Runnable

from topicloom.nodes.review.desk import ReviewDesk
from topicloom.nodes.step import Update, node
from topicloom.state.changes import told
from topicloom.state.review import Assessment, Findings, Look, Pair, decide
from topicloom.state.review_channels import ReviewState
from topicloom.state.session import Session


def judge(desk: ReviewDesk) -> Runnable[ReviewState, Update]:
    """The node that comes to the changes; asks nobody."""

    def step(state: ReviewState) -> Update:
        session = Session.model_validate(state["session"])
        roster = desk.store(session.id).roster(session)
        found = Findings(
            looks=tuple(Look.model_validate(row) for row in state["looks"]),
            assessed={r["topic"]: Assessment.model_validate(r) for r in state["assessed"]},
            pairs=tuple(Pair.model_validate(row) for row in state["pairs"]),
            near=state["near"],
        )
        changes = decide(roster, found, datetime.fromisoformat(state["now"]), desk.policy)
        return {
            "changes": [c.model_dump(mode="json") for c in changes],
            "told": [told(c, roster) for c in changes],
        }

    return node(step, "judge")
