"""estimate: will the prompt fit, and if not, what has to move?"""

from __future__ import annotations

from collections.abc import Sequence

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
from topicloom.state.session import Session
from topicloom.state.splitting import SplitPlan, SplitPolicy, plan_split


def estimate(
    *, workspaces: Workspaces, window: MainWindow, policy: SplitPolicy
) -> Runnable[SessionState, Update]:
    """The node that counts system prompt, tools, expected recall, tail and new message."""

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        store = open_workspace(workspaces, session).store
        blocks = blocks_of(store.records(session, session.view))
        sizes = [sum(map(window.layout.size, block.records)) for block in blocks]
        fixed = window.fixed_size(session) + window.expected_notes(session)
        expected = window.corrected(fixed + sum(sizes) + session.ledger_tokens, session)
        room = window.uncorrected(policy.trigger * window.size, session) - fixed
        keep = turn_options().keep_messages
        plan = None
        if keep is not None:
            plan = SplitPlan(tail=max(turn.first, session.tail), view=max(turn.first - keep, 1))
        elif expected > policy.trigger * window.size:
            plan = plan_for(blocks, sizes, max(room, window.size // 10), session, policy)
        return dump(turn=turn.model_copy(update={"plan": plan, "estimated": expected}))
        yield  # a step is a generator, though this one asks nobody

    return node(step, "estimate")


def plan_for(
    blocks: Sequence[LogicalBlock],
    sizes: Sequence[int],
    room: int,
    session: Session,
    policy: SplitPolicy,
) -> SplitPlan:
    """What has to move. Where it is enough to drop the recall notes, nothing else does.

    Args:
        blocks: The blocks in view, oldest first.
        sizes: Tokens of each.
        room: Tokens that they may fill.
        session: What is split already stays so.
        policy: Shares and counts.
    """
    if sum(sizes) <= room:
        return SplitPlan(tail=session.tail, view=session.view)
    plan = plan_split(blocks, sizes, room, policy)
    return SplitPlan(tail=max(plan.tail, session.tail), view=max(plan.view, session.view))
