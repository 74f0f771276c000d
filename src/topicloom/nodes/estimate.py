"""estimate: will the prompt fit, and if not, what has to move?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable

from topicloom.context.window import MainWindow
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    node,
    open_workspace,
    turn_options,
)
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.calls import Step
from topicloom.state.blocks import LogicalBlock, blocks_of
from topicloom.state.channels import SessionState
from topicloom.state.session import Session, Turn
from topicloom.state.splitting import SplitPlan, SplitPolicy, plan_split
from topicloom.storage.sessions import SessionStore

Skeleton = Callable[[Mapping[str, Any], SessionStore, Session, Turn], tuple[int, int]]
"""Tokens that the skeleton adds to the prompt of a turn, and that it has whole."""


def estimate(
    *,
    workspaces: Workspaces,
    window: MainWindow,
    policy: SplitPolicy,
    skeleton: Skeleton | None = None,
) -> Runnable[SessionState, Update]:
    """The node that counts system prompt, tools, expected recall, tail and new message.

    Args:
        workspaces: Of this process.
        window: The main window.
        policy: When the tail is split.
        skeleton: Counts the skeleton; None where the application has no domain.
    """

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(workspaces, session)
        tail = workspace.sizes.between(session, session.view, session.count)
        fixed = window.fixed_size(session) + window.expected_notes(session)
        due, whole = skeleton(state, workspace.store, session, turn) if skeleton else (0, 0)
        expected = window.corrected(fixed + tail + session.ledger_tokens + due, session)
        # A split drops all notes, and the skeleton enters whole again.
        room = window.uncorrected(policy.trigger * window.size, session) - fixed - whole
        keep = turn_options().keep_messages
        plan = None
        if keep is not None:
            plan = keep_newest(keep, turn.first, workspace.store, session)
        elif expected > policy.trigger * window.size:
            blocks = blocks_of(workspace.store.records(session, session.view))
            sizes = [sum(map(window.layout.size, block.records)) for block in blocks]
            plan = plan_for(blocks, sizes, max(room, window.size // 10), session, policy)
        return dump(turn=turn.model_copy(update={"plan": plan, "estimated": expected}))
        yield  # a step is a generator, though this one asks nobody

    return node(step, "estimate")


def keep_newest(keep: int, first: int, store: SessionStore, session: Session) -> SplitPlan:
    """Move everything into topics but the block that the turn's first message belongs to.

    Args:
        keep: Messages before the turn that stay in view, those of them that are whole blocks.
        first: Number of the turn's first message: a late reply belongs to an earlier block.
        store: Of the session.
        session: What is split already stays so.
    """
    starts = [b.first for b in blocks_of(store.records(session, session.tail))]
    tail = max((start for start in starts if start <= first), default=first)
    shown = store.records(session, first - keep)
    view = next((r.seq for r in shown if r.role == "user" or r.seq == 1), tail)
    return SplitPlan(tail=tail, view=min(view, tail))


def plan_for(
    blocks: Sequence[LogicalBlock],
    sizes: Sequence[int],
    room: int,
    session: Session,
    policy: SplitPolicy,
) -> SplitPlan:
    """What has to move. Where the tail is small and only recall notes pile up, they are dropped.

    Args:
        blocks: The blocks in view, oldest first.
        sizes: Tokens of each.
        room: Tokens that they may fill.
        session: What is split already stays so.
        policy: Shares and counts.
    """
    if sum(sizes) <= policy.target * room:
        return SplitPlan(tail=session.tail, view=session.view)
    plan = plan_split(blocks, sizes, room, policy)
    return SplitPlan(tail=max(plan.tail, session.tail), view=max(plan.view, session.view))
