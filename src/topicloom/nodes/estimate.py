"""estimate: the expected size of the prompt, and what has to move if it will not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from langchain_core.runnables import Runnable

from topicloom.nodes.deps import Deps
from topicloom.nodes.main_prompt import show_instructions_and_facts
from topicloom.nodes.step import Node, Update, dump, graph_store, open_turn, turn_options
from topicloom.state.channels import SessionState
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session, Turn
from topicloom.state.splitting import (
    PromptParts,
    SplitPlan,
    decide_split,
    explain_split,
    keep_newest,
)
from topicloom.storage.sessions import SessionStore

Skeleton = Callable[[Mapping[str, Any], SessionStore, Session, Turn], tuple[int, int]]
"""Tokens that the skeleton adds to the prompt of a turn, and that it has whole."""


def estimate(deps: Deps, skeleton: Skeleton | None = None) -> Runnable[SessionState, Update]:
    """The node that counts system prompt, tools, expected recall, tail and new message."""
    window, policy = deps.window, deps.settings.split

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        store = workspace.store
        sizes = workspace.sizes.between(session, session.view, session.count, window.layout)
        options = turn_options()
        facts = show_instructions_and_facts(
            deps, graph_store(), workspace, session, options.instructions
        )
        fixed = window.count_fixed(session, facts, options.tools) + window.estimate_notes(session)
        due, whole = skeleton(state, store, session, turn) if skeleton else (0, 0)
        expected = window.calibrate(fixed + sum(sizes) + session.ledger_tokens + due, session)
        keep = options.keep_messages
        if keep is None:
            now = SplitPlan(tail=session.tail, view=session.view)
            shown = cache(lambda: group_rounds(store.messages(session, session.view)))
            plan = decide_split(
                now,
                shown,
                lambda message: sizes[message.seq - session.view],
                expected=expected,
                # A split drops all notes, and the skeleton enters whole again.
                room=window.uncalibrate(policy.trigger * window.size, session) - fixed - whole,
                window=window.size,
                policy=policy,
            )
            if plan is not None:
                parts = PromptParts(
                    fixed=window.calibrate(fixed, session),
                    notes=window.calibrate(session.ledger_tokens + due, session),
                    messages=window.calibrate(sum(sizes), session),
                )
                why = explain_split(now, plan, shown(), parts, window.size, policy)
                turn = turn.model_copy(update={"events": (*turn.events, why)})
        else:
            unsplit = group_rounds(store.messages(session, session.tail))
            # Where all that was unsplit is removed, the newest message is in a topic already.
            first = max(turn.first, session.tail)
            plan = keep_newest(unsplit, store.messages(session, turn.first - keep), first)
            if keep == 0 and options.chats:  # nobody waits for a reply to what is imported
                plan = SplitPlan(tail=session.count + 1, view=plan.view)
        return dump(turn=turn.model_copy(update={"plan": plan}))

    return Node(step, "estimate")
