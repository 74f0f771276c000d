"""split: move the older tail into topics, whole blocks at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from langchain_core.runnables import Runnable

from topicloom.boundary.adsorber import LOOK_BACK, Adsorber
from topicloom.nodes.divide import divide_large
from topicloom.nodes.moving import Moves
from topicloom.nodes.perceive import language_of
from topicloom.nodes.sorting import sort_blocks
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    dumped,
    emit,
    node,
    open_workspace,
)
from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.roles.base import Arbiter, Brief, BriefRequest, SplitRequest
from topicloom.roles.calls import Ask, Outcome, Step, ask, ask_each
from topicloom.roles.team import Roles
from topicloom.state.activation import FRESH, ActivationPolicy, admit, handed_on
from topicloom.state.blocks import LogicalBlock, Ruling, blocks_of
from topicloom.state.channels import SessionState
from topicloom.state.hierarchy import named_in_full
from topicloom.state.lifecycle import woken
from topicloom.state.receipt import Call
from topicloom.state.records import Record
from topicloom.state.session import Language, Session, Turn
from topicloom.state.splitting import SplitPlan, runs
from topicloom.state.topics import Roster, Topic, shown_of

_RELATED = 8
"""References to other topics that a topic keeps."""


def split(
    *,
    workspaces: Workspaces,
    roles: Roles,
    adsorber: Adsorber,
    size: Callable[[Record], int],
    chunk_tokens: int,
    topic_tokens: int,
    topics_shown: int,
    activation: ActivationPolicy,
    language: Language | None,
) -> Runnable[SessionState, Update]:
    """The node that assigns blocks to topics and writes the briefs of what it touched.

    Args:
        workspaces: Of this process.
        roles: Splitter, brief writer and their stand-ins; the arbiter, if there is one.
        adsorber: Its segments, and the arbiter's rulings in them, are the splitter's hint.
        size: Tokens of a record.
        chunk_tokens: How much one splitter call is given.
        topic_tokens: What a topic's messages may come to; past it it is divided into sub-topics.
        topics_shown: Topics that a splitter is shown at most, but for those that are active.
        activation: Touched topics wake by rank.
        language: None to follow the conversation.
    """

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        plan = turn.plan
        assert plan is not None  # the wiring comes here only with a plan
        workspace = open_workspace(workspaces, session)
        store = workspace.store
        blocks = blocks_of(store.records(session, session.tail, plan.tail - 1))
        emit("split", blocks=len(blocks), first=session.tail, last=plan.tail - 1)
        work = Moves(store, session, size, topic_tokens)
        if roles.arbiter is not None:
            before = blocks_of(store.records(session, session.tail - LOOK_BACK, session.tail - 1))
            blocks = yield from _ruled(before, blocks, adsorber, roles.arbiter, work.calls)
        labels = adsorber.segments(blocks)
        for start, stop in runs([work.tokens(b) for b in blocks], chunk_tokens):
            some = slice(start, stop)
            request = _request(work, workspace, blocks[some], labels[some], topics_shown)
            work.move((yield from sort_blocks(request, roles, work.calls)))
        divided = yield from divide_large(work, roles, adsorber, chunk_tokens)
        _relate(work)
        yield from _write_briefs(work, roles)
        work.session = store.save_topics(work.session, list(work.rows.values()))
        if blocks:
            spoken = language or language_of([b.text for b in blocks[-20:]])
            work.session = work.session.model_copy(update={"language": spoken})
        session, turn = _settled(work, turn, plan, activation)
        events = (*turn.events, *_events(blocks, work), *divided)
        turn = turn.model_copy(update={"events": events})
        return {**dump(session, turn), "calls": dumped(work.calls)}

    return node(step, "split")


def _ruled(
    before: Sequence[LogicalBlock],
    blocks: Sequence[LogicalBlock],
    adsorber: Adsorber,
    arbiter: Arbiter,
    calls: list[Call],
) -> Step[list[LogicalBlock]]:
    """The blocks, with the arbiter's rulings on those that the adsorber is in doubt about.

    It is asked about all at once. Where it fails, the adsorber's likelier answer stands.
    """
    doubts = adsorber.doubts(before, blocks)
    outcomes = yield [Ask("arbiter", arbiter, question) for question in doubts.values()]
    calls += [outcome.call for outcome in outcomes]
    answers = dict(zip(doubts, (outcome.value for outcome in outcomes), strict=True))
    return [replace(block, ruling=_ruling(answers.get(block.first))) for block in blocks]


def _ruling(continues: float | None) -> Ruling | None:
    if continues is None:
        return None
    return "opens" if continues < 0.5 else "continues"


def _request(
    work: Moves,
    workspace: Workspace,
    blocks: Sequence[LogicalBlock],
    labels: Sequence[int],
    topics_shown: int,
) -> SplitRequest:
    roster = Roster(work.topics)
    affinity = workspace.indexed(roster).affinity(blocks)
    priors = {topic: float(near.max()) for topic, near in affinity.items()}
    active = frozenset(work.session.active) | frozenset(work.touched)
    previous = work.before(blocks[0].first)
    at_hand = active if previous is None else active | {previous}
    shown = shown_of(roster.open(), priors, topics_shown, always=at_hand)
    return SplitRequest(
        session=work.session.id,
        blocks=blocks,
        segments=labels,
        affinity={t.id: affinity[t.id] for t in shown if t.id in affinity},
        topics=named_in_full(shown, roster.topics),
        active=active,
        previous=previous,
        language=work.session.language,
    )


def _settled(
    work: Moves, turn: Turn, plan: SplitPlan, activation: ActivationPolicy
) -> tuple[Session, Turn]:
    """Session and turn after the split: a shorter tail, no notes, and what was touched awake."""
    active = work.session.active
    for topic_id in work.divided:
        active = handed_on(active, topic_id, work.heirs(topic_id))
    result = admit(active, dict.fromkeys(work.touched, FRESH), activation)
    for topic_id in result.woken:
        woken(work.touched[topic_id], active)
    session = work.session.model_copy(
        update={
            "tail": plan.tail,
            "view": plan.view,
            "ledger": None,
            "ledger_tokens": 0,
            "active": result.active,
            "home": work.before(plan.tail),
        }
    )
    return session, turn.model_copy(
        update={"woken": result.woken, "slept": result.slept, "split": tuple(work.touched)}
    )


def _relate(work: Moves) -> None:
    """Note which topics were quoted for the messages that a topic got."""
    notes = work.store.notes(work.session)
    quoted = {n.after: [t.topic for t in n.topics if t.quotes] for n in notes}
    for topic_id, blocks in work.moved.items():
        topic = work.touched[topic_id]
        ids = [i for b in blocks for i in quoted.get(b.first, ()) if i != topic_id]
        related = tuple(dict.fromkeys((*topic.related, *ids)))[-_RELATED:]
        work.touched[topic_id] = topic.model_copy(update={"related": related})


def _write_briefs(work: Moves, roles: Roles) -> Generator[Sequence[Ask], Sequence[Outcome], None]:
    topics = list(work.touched.values())
    requests = [
        BriefRequest(work.session.id, t, work.store.topic_records(t), work.session.language)
        for t in topics
    ]
    answers: list[tuple[Brief | None, Call]] = []
    if requests:
        answers = yield from ask_each("brief", roles.brief, requests, [t.id for t in topics])
    for topic, request, (brief, call) in zip(topics, requests, answers, strict=True):
        work.calls.append(call)
        if brief is None:
            brief, call = yield from ask("brief", roles.fallback.brief, request, topic.id)
            work.calls.append(call)
        if brief is not None:
            named = {"name": _distinct(work, topic, brief.name), "brief": brief.text}
            work.touched[topic.id] = topic.model_copy(update=named)


def _distinct(work: Moves, topic: Topic, name: str) -> str:
    """The name that a brief writer gives, unless another part of the same topic has it."""
    others = (t for t in work.touched.values() if t.parent == topic.parent and t.id != topic.id)
    taken = topic.parent is not None and any(t.name == name for t in others)
    return topic.name if taken or not name else name


def _events(blocks: Sequence[LogicalBlock], work: Moves) -> list[str]:
    if not blocks:
        return ["dropped the recall notes to make room"]
    names = ", ".join(f"{t.id} “{t.name}”" for t in work.touched.values())
    return [f"split m{blocks[0].first}-m{blocks[-1].last} into {names}"]
