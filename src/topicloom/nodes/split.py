"""split: move the older tail into topics, whole rounds at a time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from cachetools import cached
from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.dividing import divide_large
from topicloom.nodes.facts import choose_facts
from topicloom.nodes.move_chats import move_chats
from topicloom.nodes.putting_right import put_right
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import (
    Update,
    dump,
    emit,
    node,
    open_turn,
)
from topicloom.roles.briefing import write_briefs
from topicloom.roles.rulings import rule_boundaries
from topicloom.roles.sorting import make_split_request, sort_rounds
from topicloom.roles.splitter import SPLITTER
from topicloom.state.channels import SessionState
from topicloom.state.language import detect_language
from topicloom.state.receipt import Call
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.splitting import cut_runs
from topicloom.topics.split_draft import SplitDraft


def split(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that assigns rounds to topics and writes the briefs of what it touched."""

    def step(state: SessionState) -> Step[Update]:
        session, turn, workspace = open_turn(deps.workspaces, state)
        plan = turn.plan
        assert plan is not None  # the wiring comes here only with a plan
        store = workspace.store
        rounds = group_rounds(store.messages(session, session.tail, plan.tail - 1))
        emit("split", rounds=len(rounds), first=session.tail, last=plan.tail - 1)
        # To measure a very long round takes time.
        measure = cached({}, attrgetter("first", "last"))(deps.reader_window.measure)
        draft = SplitDraft(store, session, measure, deps.topic_tokens)
        calls, waits = list[Call](), deps.waits.of(session.id)
        rounds, moved = move_chats(draft, rounds, deps.embedder), rounds
        rounds = yield from rule_boundaries(deps.roles, deps.adsorber, draft, rounds, calls, waits)
        odds = deps.adsorber.continuity(rounds)
        for part in cut_runs(rounds, *deps.split_room):
            index, most = workspace.indexed(draft.session, draft.table), deps.settings.index_topics
            request = make_split_request(draft, index, rounds[part], odds[part], most)
            draft.move((yield from sort_rounds(deps.roles, request, calls, waits)))
        if deps.roles.by_index(SPLITTER):
            turn = put_right(draft, workspace, turn, plan.tail, deps.embedder)
        divided = yield from divide_large(deps, draft, calls)
        yield from write_briefs(deps.roles, draft, calls, waits, workspace.late_briefs)
        session = draft.save()
        if moved:
            spoken = deps.language or detect_language([b.text for b in moved[-20:]])
            session = session.model_copy(update={"language": spoken})
        if not current_run().fork:  # a fork shows what was known at its checkpoint until now
            session = session.model_copy(update={"facts_at": ""})
        change = draft.activate(deps.settings.activation)
        session = choose_facts(deps, workspace, session).model_copy(
            update={
                "tail": plan.tail,
                "view": plan.view,
                "ledger": None,
                "ledger_tokens": 0,
                "active": change.active,
            }
        )
        turn = turn.model_copy(
            update={
                "activated": change.activated,
                "deactivated": change.deactivated,
                "split": draft.select_open(draft.touched),
                "events": (*turn.events, _describe_split(moved, draft), *divided),
            }
        )
        return dump(session, turn, calls=calls)

    return node(step, "split")


def _describe_split(rounds: Sequence[Round], draft: SplitDraft) -> str:
    if not rounds:
        return "dropped the recall notes to make room"
    names = ", ".join(f"{t.id} “{t.name}”" for t in draft.touched.values())
    return f"split m{rounds[0].first}-m{rounds[-1].last} into {names}"
