"""repair: put right what is filed wrong, before a review looks at the topics."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.repairs import find_repairs_of_review
from topicloom.nodes.runs import name_thread
from topicloom.nodes.step import Update, node
from topicloom.review.channels import ReviewState
from topicloom.review.session_client import ReviewDeps
from topicloom.roles.splitter import SPLITTER
from topicloom.state.changes import describe_change
from topicloom.storage.writers import catch_up


def repair(deps: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that a review begins with.

    It does nothing where a chat model splits: that knows more than the index. What it finds is
    worked out again by the turn that makes the changes; so a turn of the user, or a person's
    change, that came between is never undone by them.
    """

    def step(state: ReviewState) -> Step[Update]:
        if not deps.shared.roles.by_index(SPLITTER):
            return {"repaired": []}
        thread = name_thread(state["thread"])
        session, waiting = yield from deps.client.read(thread)
        workspace = deps.shared.workspaces.open(session.id, deps.client.graph.store)
        session = catch_up(workspace.store, session)
        changes = find_repairs_of_review(deps.shared, workspace, session)
        if state.get("dry_run") or waiting or not changes:
            table = workspace.store.topic_table(session)
            return {"repaired": [] if waiting else [describe_change(c, table) for c in changes]}
        turn = yield from deps.client.repair(thread)
        return {"repaired": list(turn.events) if turn else []}

    return node(step, "repair")
