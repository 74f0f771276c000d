"""split: move the older tail into topics, whole rounds at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
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
from topicloom.nodes.workspace import Workspace
from topicloom.roles.arbiter import ARBITER
from topicloom.roles.base import Answer
from topicloom.roles.brief import BRIEF, Brief, make_brief_request
from topicloom.roles.calls import ask_all, ask_first, read_late
from topicloom.roles.sorting import make_split_request, sort_rounds
from topicloom.roles.splitter import SPLITTER
from topicloom.state.changes import make_brief_update
from topicloom.state.channels import SessionState
from topicloom.state.language import detect_language
from topicloom.state.receipt import Call
from topicloom.state.rounds import Round, Ruling, group_rounds
from topicloom.state.splitting import cut_runs
from topicloom.state.topics import Topic
from topicloom.topics.adsorber import LOOK_BACK
from topicloom.topics.split_draft import SplitDraft

_BOUNDARIES = 64
"""Rulings of an arbiter that a session remembers, for what is put right later."""
_YOUNG, _REPAIRED = 256, 32
"""Messages up to which each split looks for what is filed wrong, and after how many more it does so
again: in a small window each turn splits, and to look through a long conversation takes time."""


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
        rounds = yield from _apply_rulings(deps, draft, calls, rounds)
        odds = deps.adsorber.continuity(rounds)
        for part in cut_runs(rounds, *deps.split_room):
            index, most = workspace.indexed(draft.session, draft.table), deps.settings.index_topics
            request = make_split_request(draft, index, rounds[part], odds[part], most)
            draft.move((yield from sort_rounds(deps.roles, request, calls, waits)))
        young = plan.tail <= _YOUNG
        due = young or plan.tail // _REPAIRED > session.tail // _REPAIRED
        if due and deps.roles.by_index(SPLITTER):
            turn = put_right(draft, workspace, turn, deps.embedder)
        divided = yield from divide_large(deps, draft, calls)
        yield from _write_briefs(deps, draft, calls, workspace)
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


def _apply_rulings(
    deps: Deps, draft: SplitDraft, calls: list[Call], rounds: list[Round]
) -> Step[list[Round]]:
    """The rounds, with the arbiter's rulings on all that the adsorber is in doubt about.

    Where there is none, or it fails, the adsorber's likelier answer stands.
    """
    arbiter, tail = deps.roles.get(ARBITER), draft.session.tail
    if arbiter is None:
        return rounds
    before = group_rounds(draft.store.messages(draft.session, tail - LOOK_BACK, tail - 1))
    doubts, waits = deps.adsorber.doubts(before, rounds), deps.waits.of(draft.session.id)
    outcomes = yield from ask_all("arbiter", arbiter, list(doubts.values()), waits=waits)
    calls += [call for _, call in outcomes]
    answers = dict(zip(doubts, (answer for answer, _ in outcomes), strict=True))
    ruled = [replace(round_, ruling=_to_ruling(answers.get(round_.first))) for round_ in rounds]
    boundaries = (*draft.session.boundaries, *(one.first for one in ruled if one.ruling == "opens"))
    draft.session = draft.session.model_copy(update={"boundaries": boundaries[-_BOUNDARIES:]})
    return ruled


def _to_ruling(continues: float | None) -> Ruling | None:
    if continues is None:
        return None
    return "opens" if continues < 0.5 else "continues"


def _write_briefs(
    deps: Deps, draft: SplitDraft, calls: list[Call], workspace: Workspace
) -> Step[None]:
    """Write the briefs of what was touched; those that are late are left for a later turn.

    Where a model sorts, the stand-in leaves the names and briefs that it gave as they are.
    """
    late = dict[str, Future[Answer[Brief]]]()
    sorted_by_model = not deps.roles.by_index(SPLITTER)
    roles, topics = deps.roles, [t for t in draft.touched.values() if not t.loose]
    messages = {t.id: draft.store.topic_messages(draft.session, t) for t in topics}
    known = draft.topics
    requests = [make_brief_request(draft.session, t, messages, known) for t in topics]
    answers: list[tuple[Brief | None, Call]] = []
    if requests:
        answers = yield from ask_all(
            "brief",
            roles[BRIEF],
            requests,
            [t.id for t in topics],
            waits=deps.waits.of(draft.session.id),
            late=late.__setitem__,
        )
    for topic, request, (brief, call) in zip(topics, requests, answers, strict=True):
        calls.append(call)
        name = brief.name if brief else ""
        if brief is None and not (sorted_by_model and topic.brief):
            stand_in = roles.in_turn(BRIEF)[1:]
            brief = yield from ask_first("brief", stand_in, request, calls, topic.id)
            name = brief.name if brief and not sorted_by_model else ""
        if brief is not None:
            draft.describe(topic, name, brief.text)
    for topic_id, made in late.items():
        topic, purges = draft.touched[topic_id], draft.store.log.purges
        made.add_done_callback(partial(_leave_brief, workspace, topic, purges))


def _leave_brief(
    workspace: Workspace, topic: Topic, purges: int, made: Future[Answer[Brief]]
) -> None:
    """Leave a brief that came late to a turn to come, which takes it over if it still fits."""
    brief = read_late("brief", made)
    update = brief and make_brief_update(topic, brief.name or topic.name, brief.text)
    if update:
        workspace.late_briefs[topic.id] = (purges, update)


def _describe_split(rounds: Sequence[Round], draft: SplitDraft) -> str:
    if not rounds:
        return "dropped the recall notes to make room"
    names = ", ".join(f"{t.id} “{t.name}”" for t in draft.touched.values())
    return f"split m{rounds[0].first}-m{rounds[-1].last} into {names}"
