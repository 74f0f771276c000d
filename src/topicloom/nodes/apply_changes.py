"""apply_changes: make changes to topics, of a review or a person, as far as they still fit.

What a review regroups is worked out here, in the turn: nothing can come between.
"""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.nodes.deps import Deps
from topicloom.nodes.regrouping import find_regroupings_of_review
from topicloom.nodes.step import Node, Update, dump, open_turn, turn_options
from topicloom.state.channels import SessionState
from topicloom.storage.topic_changes import make_changes


def apply_changes(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that makes the changes that came with the turn."""

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        options = turn_options()
        changes = list(options.changes)
        if options.regroup:
            changes += find_regroupings_of_review(deps, workspace, session)
        return dump(*make_changes(workspace.store, session, turn, changes))

    return Node(step, "apply_changes")
