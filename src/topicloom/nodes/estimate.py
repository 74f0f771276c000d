"""estimate: will the prompt fit, and if not, what has to move?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import Runnable

from topicloom.nodes.deps import Deps
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    node,
    open_workspace,
    turn_options,
)
from topicloom.state.channels import SessionState
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session, Turn
from topicloom.state.splitting import SplitPlan, decide_split, keep_newest
from topicloom.storage.sessions import SessionStore

Skeleton = Callable[[Mapping[str, Any], SessionStore, Session, Turn], tuple[int, int]]
"""Tokens that the skeleton adds to the prompt of a turn, and that it has whole."""


def estimate(deps: Deps, skeleton: Skeleton | None = None) -> Runnable[SessionState, Update]:
    """The node that counts system prompt, tools, expected recall, tail and new message.

    Args:
        deps: Of the session.
        skeleton: Counts the skeleton; None where the application has no domain.
    """
    window, policy = deps.window, deps.settings.split

    def step(state: SessionState) -> Update:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(deps.workspaces, session)
        store = workspace.store
        tail = workspace.sizes.between(session, session.view, session.count)
        fixed = window.fixed_size(session) + window.expected_notes(session)
        due, whole = skeleton(state, store, session, turn) if skeleton else (0, 0)
        expected = window.corrected(fixed + tail + session.ledger_tokens + due, session)
        keep = turn_options().keep_messages
        if keep is None:
            plan = decide_split(
                SplitPlan(tail=session.tail, view=session.view),
                lambda: group_rounds(store.records(session, session.view)),
                window.layout.size,
                expected=expected,
                # A split drops all notes, and the skeleton enters whole again.
                room=window.uncorrected(policy.trigger * window.size, session) - fixed - whole,
                window=window.size,
                policy=policy,
            )
        else:
            unsplit = group_rounds(store.records(session, session.tail))
            plan = keep_newest(unsplit, store.records(session, turn.first - keep), turn.first)
        return dump(turn=turn.model_copy(update={"plan": plan, "estimated": expected}))

    return node(step, "estimate")
