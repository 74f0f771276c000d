"""split: move the older tail into topics, whole rounds at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.facts import choose_facts
from topicloom.nodes.move_chats import move_chats
from topicloom.nodes.putting_right import put_right
from topicloom.nodes.runs import current_run
from topicloom.nodes.split_draft import SplitDraft, remember_sizes
from topicloom.nodes.step import (
    Update,
    dump,
    dumped,
    emit,
    node,
    open_turn,
)
from topicloom.nodes.workspace import Workspace
from topicloom.roles.arbiter import ARBITER, Arbiter
from topicloom.roles.base import Answer
from topicloom.roles.brief import BRIEF, BRIEF_LIMIT, Brief, BriefRequest
from topicloom.roles.calls import ask_all, ask_first, read_late
from topicloom.roles.splitter import SPLITTER, SplitRequest
from topicloom.state.activation import INITIAL_RELEVANCE, activate_candidates, transfer_activation
from topicloom.state.changes import make_brief_update
from topicloom.state.channels import SessionState
from topicloom.state.hierarchy import add_full_names, find_path
from topicloom.state.language import detect_language
from topicloom.state.lifecycle import mark_active
from topicloom.state.receipt import Call
from topicloom.state.rounds import Round, Ruling, group_rounds
from topicloom.state.session import Session, Turn
from topicloom.state.splitting import SplitPlan, cut_runs
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_names import find_owner
from topicloom.state.topics import Topic, TopicTable, select_shown
from topicloom.topics.adsorber import LOOK_BACK

_BOUNDARIES = 64
"""Rulings of an arbiter that a session remembers, for what is put right later."""
_YOUNG, _REPAIRED = 256, 32
"""Messages up to which each split looks for what is filed wrong, and after how many more it does so
again: in a small window each turn splits, and to look through a long conversation takes time."""
_OTHERS = 64
"""Other topics, the newest ones, that a new name has to differ from."""


def split(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that assigns rounds to topics and writes the briefs of what it touched."""

    def step(state: SessionState) -> Step[Update]:
        session, turn, workspace = open_turn(deps.workspaces, state)
        plan = turn.plan
        assert plan is not None  # the wiring comes here only with a plan
        store = workspace.store
        rounds = group_rounds(store.messages(session, session.tail, plan.tail - 1))
        emit("split", rounds=len(rounds), first=session.tail, last=plan.tail - 1)
        measure = remember_sizes(deps.reader_window.measure)
        draft = SplitDraft(deps, store, session, measure, deps.topic_tokens)
        rounds, moved = move_chats(draft, rounds), rounds
        arbiter = deps.roles.get(ARBITER)
        if arbiter is not None:
            before = group_rounds(
                store.messages(session, session.tail - LOOK_BACK, session.tail - 1)
            )
            rounds = yield from _apply_rulings(draft, arbiter, before, rounds)
        labels, odds = deps.adsorber.segments(rounds), deps.adsorber.continuity(rounds)
        count = deps.window.counter.message
        sizes = [sum(count(m.message) for m in b.messages) for b in rounds]
        for start, stop in cut_runs(sizes, draft.chunk_tokens):
            part = slice(start, stop)
            request = _make_request(draft, workspace, rounds[part], labels[part], odds[part])
            draft.move((yield from draft.sort(request)))
        young = plan.tail <= _YOUNG
        due = young or plan.tail // _REPAIRED > session.tail // _REPAIRED
        if due and deps.roles.by_index(SPLITTER):
            turn = put_right(draft, workspace, turn)
        divided = yield from draft.divide_large()
        yield from _write_briefs(draft, workspace)
        draft.session = store.save_topics(draft.session, list(draft.rows.values()))
        if moved:
            spoken = deps.language or detect_language([b.text for b in moved[-20:]])
            draft.session = draft.session.model_copy(update={"language": spoken})
        if not current_run().fork:  # a fork shows what was known at its checkpoint until now
            draft.session = draft.session.model_copy(update={"facts_at": ""})
        draft.session = choose_facts(deps, draft.session)
        session, turn = _conclude(draft, turn, plan)
        events = (*turn.events, _describe_split(moved, draft), *divided)
        turn = turn.model_copy(update={"events": events})
        return {**dump(session, turn), "calls": dumped(draft.calls)}

    return node(step, "split")


def _apply_rulings(
    draft: SplitDraft, arbiter: Arbiter, before: Sequence[Round], rounds: Sequence[Round]
) -> Step[list[Round]]:
    """The rounds, with the arbiter's rulings on all that the adsorber is in doubt about.

    Where it fails, the adsorber's likelier answer stands.
    """
    doubts = draft.deps.adsorber.doubts(before, rounds)
    outcomes = yield from ask_all("arbiter", arbiter, list(doubts.values()), waits=draft.waits)
    draft.calls += [call for _, call in outcomes]
    answers = dict(zip(doubts, (answer for answer, _ in outcomes), strict=True))
    ruled = [replace(round_, ruling=_to_ruling(answers.get(round_.first))) for round_ in rounds]
    boundaries = (*draft.session.boundaries, *(one.first for one in ruled if one.ruling == "opens"))
    draft.session = draft.session.model_copy(update={"boundaries": boundaries[-_BOUNDARIES:]})
    return ruled


def _to_ruling(continues: float | None) -> Ruling | None:
    if continues is None:
        return None
    return "opens" if continues < 0.5 else "continues"


def _make_request(
    draft: SplitDraft,
    workspace: Workspace,
    rounds: Sequence[Round],
    labels: Sequence[int],
    continues: Sequence[float],
) -> SplitRequest:
    table, most = TopicTable(draft.topics), draft.deps.settings.index_topics
    affinities = workspace.indexed(draft.session, table).affinities(
        rounds, continues, [*table.open(), *table.loose()]
    )
    priors = affinities.best()
    active = frozenset(draft.session.active) | frozenset(draft.touched)
    previous = draft.before(rounds[0].first)
    at_hand = active if previous is None else active | {previous}
    shown = select_shown(table.open(), priors, most, always=at_hand)
    return SplitRequest(
        session=draft.session.id,
        rounds=rounds,
        segments=labels,
        affinities=affinities,
        topics=add_full_names(shown, table.topics),
        active=active,
        previous=previous,
        language=draft.session.language,
    )


def _conclude(draft: SplitDraft, turn: Turn, plan: SplitPlan) -> tuple[Session, Turn]:
    """Session and turn after the split: a shorter tail, no notes, touched topics active."""
    active = draft.session.active
    for topic_id in draft.divided:
        active = transfer_activation(active, topic_id, draft.heirs(topic_id))
    table = TopicTable(draft.topics)
    readable, pinned = {t.id for t in table.open()}, table.pinned()
    moved = dict.fromkeys((i for i in draft.moved if i in readable), INITIAL_RELEVANCE)
    result = activate_candidates(active, moved, draft.deps.settings.activation, pinned)
    for topic_id in result.activated:
        mark_active(table[topic_id], active)
    session = draft.session.model_copy(
        update={
            "tail": plan.tail,
            "view": plan.view,
            "ledger": None,
            "ledger_tokens": 0,
            "active": result.active,
        }
    )
    return session, turn.model_copy(
        update={
            "activated": result.activated,
            "deactivated": result.deactivated,
            "split": tuple(i for i in draft.touched if i in readable),
        }
    )


def _write_briefs(draft: SplitDraft, workspace: Workspace) -> Step[None]:
    """Write the briefs of what was touched; those that are late are left for a later turn."""
    late = dict[str, Future[Answer[Brief]]]()
    roles, topics = draft.deps.roles, [t for t in draft.touched.values() if not t.loose]
    messages = {t.id: draft.store.topic_messages(draft.session, t) for t in topics}
    known = draft.topics
    requests = [_make_brief_request(draft.session, topic, messages, known) for topic in topics]
    answers: list[tuple[Brief | None, Call]] = []
    if requests:
        answers = yield from ask_all(
            "brief",
            roles[BRIEF],
            requests,
            [t.id for t in topics],
            waits=draft.waits,
            late=late.__setitem__,
        )
    for topic, request, (brief, call) in zip(topics, requests, answers, strict=True):
        draft.calls.append(call)
        if brief is None:
            stand_in = roles.in_turn(BRIEF)[1:]
            brief = yield from ask_first("brief", stand_in, request, draft.calls, topic.id)
        if brief is not None:
            name = _choose_name(draft, topic, brief.name)
            draft.touched[topic.id] = topic.described(name, brief.text)
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


def _make_brief_request(
    session: Session,
    topic: Topic,
    messages: Mapping[str, Sequence[StoredMessage]],
    known: Mapping[str, Topic],
) -> BriefRequest:
    """The request for a topic's brief, with the briefs of the topics that are newest.

    A topic without a brief is described by the first messages of the user in it.
    """
    rest = [t for t in known.values() if t.status == "open" and t.id != topic.id]
    rest = sorted(rest, key=lambda t: t.newest, reverse=True)[:_OTHERS]
    others = {t.name: t.brief or _begin(messages.get(t.id, ())) for t in rest}
    return BriefRequest(
        session=session.id,
        topic=topic,
        messages=messages[topic.id],
        language=session.language,
        others=others,
        within=[t.name for t in find_path(topic, known)[:-1]],
    )


def _begin(messages: Sequence[StoredMessage]) -> str:
    """The beginning of the user's messages, as long as a brief."""
    texts = [m.text[:200] for m in messages if m.role == "user"]
    return "\n".join(texts[:20])[:BRIEF_LIMIT]


def _choose_name(draft: SplitDraft, topic: Topic, name: str) -> str:
    """The name that a brief writer gives, unless another open topic has it."""
    others = TopicTable(draft.topics).open() + TopicTable(draft.topics).loose()
    return topic.name if not name or find_owner(name, others, [topic.id]) else name


def _describe_split(rounds: Sequence[Round], draft: SplitDraft) -> str:
    if not rounds:
        return "dropped the recall notes to make room"
    names = ", ".join(f"{t.id} “{t.name}”" for t in draft.touched.values())
    return f"split m{rounds[0].first}-m{rounds[-1].last} into {names}"
