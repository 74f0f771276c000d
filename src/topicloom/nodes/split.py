"""split: move the older tail into topics, whole blocks at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.runnables import Runnable

from topicloom.nodes.perceive import language_of
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
from topicloom.nodes.workspace import Workspaces
from topicloom.perception.adsorber import Adsorber
from topicloom.roles.base import Brief, BriefRequest, Roles, SplitRequest
from topicloom.roles.calls import Ask, Outcome, Step, ask, ask_each
from topicloom.state.activation import ActivationPolicy, admit
from topicloom.state.blocks import LogicalBlock, blocks_of
from topicloom.state.channels import SessionState
from topicloom.state.receipt import Call
from topicloom.state.records import Record
from topicloom.state.session import Language, Session, Turn
from topicloom.state.splitting import Portion, SplitPlan, gather, joined
from topicloom.state.topics import Roster, Topic
from topicloom.storage.sessions import SessionStore

_FRESH = 0.6
"""Standing of a topic that messages have just been moved to: what was in view is on the mind."""


_RELATED = 8
"""References to other topics that a topic keeps."""


@dataclass(slots=True)
class _Work:
    """What a split has done so far."""

    session: Session
    touched: dict[str, Topic] = field(default_factory=dict)
    moved: dict[str, list[LogicalBlock]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)


def split(
    *,
    workspaces: Workspaces,
    roles: Roles,
    adsorber: Adsorber,
    size: Callable[[Record], int],
    chunk_tokens: int,
    topic_tokens: int,
    activation: ActivationPolicy,
    language: Language | None,
) -> Runnable[SessionState, Update]:
    """The node that assigns blocks to topics and writes the briefs of what it touched.

    Args:
        workspaces: Of this process.
        roles: Splitter, brief writer and their stand-ins.
        adsorber: Its segments are the splitter's hint.
        size: Tokens of a record.
        chunk_tokens: How much one splitter call is given.
        topic_tokens: What a topic's messages may come to; past it a continuation is opened.
        activation: Touched topics wake by rank.
        language: None to follow the conversation.
    """

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        assert turn.plan is not None  # the wiring comes here only with a plan
        workspace = open_workspace(workspaces, session)
        store, index = workspace.store, workspace.index
        blocks = blocks_of(store.records(session, session.tail, turn.plan.tail - 1))
        emit("split", blocks=len(blocks), first=session.tail, last=turn.plan.tail - 1)
        labels = adsorber.segments(blocks)
        work = _Work(session)
        for start, stop in chunks([sum(map(size, b.records)) for b in blocks], chunk_tokens):
            roster = Roster({**store.roster(session).topics, **work.touched})
            index.update(roster, store.topic_records)
            hints = list(zip(labels[start:stop], index.affinity(blocks[start:stop]), strict=True))
            portions = yield from _assign(work, roster, roles, blocks[start:stop], hints)
            _move(work, store, portions, size, topic_tokens)
        _relate(work, store)
        yield from _write_briefs(work, store, roles)
        work.session = store.save_topics(work.session, list(work.touched.values()))
        if blocks:
            spoken = language or language_of([b.text for b in blocks[-20:]])
            work.session = work.session.model_copy(update={"language": spoken})
        session, turn = _settled(work, turn, turn.plan, blocks, activation)
        return {**dump(session, turn), "calls": dumped(work.calls)}

    return node(step, "split")


def _settled(
    work: _Work,
    turn: Turn,
    plan: SplitPlan,
    blocks: Sequence[LogicalBlock],
    activation: ActivationPolicy,
) -> tuple[Session, Turn]:
    """Session and turn after the split: a shorter tail, no notes, and what was touched awake."""
    result = admit(work.session.active, dict.fromkeys(work.touched, _FRESH), activation)
    session = work.session.model_copy(
        update={
            "tail": plan.tail,
            "view": plan.view,
            "ledger": None,
            "ledger_tokens": 0,
            "active": result.active,
            "home": _before(work, plan.tail),
        }
    )
    return session, turn.model_copy(
        update={
            "woken": result.woken,
            "slept": result.slept,
            "split": tuple(work.touched),
            "events": (*turn.events, *_events(blocks, work.touched)),
        }
    )


def chunks(sizes: Sequence[int], limit: int, filled: int = 0) -> list[tuple[int, int]]:
    """Cut a sequence into runs of at most `limit` in sum (one item may exceed it alone).

    Args:
        sizes: Of the items.
        limit: Of a run.
        filled: What the first run begins with.

    Returns:
        Start and stop of each run.
    """
    cuts, total = [0], filled
    for index, item in enumerate(sizes):
        if index and total and total + item > limit:
            cuts.append(index)
            total = 0
        total += item
    return [(a, b) for a, b in zip(cuts, [*cuts[1:], len(sizes)], strict=True) if a < b]


_Steps = Generator[Sequence[Ask], Sequence[Outcome], list[Portion]]


def _assign(
    work: _Work,
    roster: Roster,
    roles: Roles,
    blocks: Sequence[LogicalBlock],
    hints: Sequence[tuple[int, Mapping[str, float]]],
) -> _Steps:
    """Ask the splitter; ask once more for what it left out; then the stand-in decides.

    Should even that fail, blocks stay with the ones before them.
    """
    known = {t.id: t for t in roster.open()}
    portions: list[Portion] = []
    left, hint = list(blocks), dict(zip((b.first for b in blocks), hints, strict=True))
    for splitter in (roles.splitter, roles.splitter, roles.fallback.splitter):
        if not left:
            break
        request = SplitRequest(
            session=work.session.id,
            blocks=left,
            segments=[hint[b.first][0] for b in left],
            affinity=[hint[b.first][1] for b in left],
            topics=list(known.values()),
            active=frozenset(work.session.active) | frozenset(work.touched),
            previous=_before(work, left[0].first),
            language=work.session.language,
        )
        answer, call = yield from ask("splitter", splitter, request)
        work.calls.append(call)
        found, left = gather(left, answer or (), known)
        portions += found
    if left:  # nobody sorts them, but nothing may be lost
        home = _before(work, left[0].first)
        portions.append(Portion(home, left[0].text.strip()[:40] or "…", "", tuple(left)))
    return joined(portions)


def _before(work: _Work, first: int) -> str | None:
    """The topic that the block before a message went to."""
    homes = {b.last: t for t, moved in work.moved.items() for b in moved}
    return homes.get(first - 1, work.session.home)


def _move(
    work: _Work,
    store: SessionStore,
    portions: Sequence[Portion],
    size: Callable[[Record], int],
    limit: int,
) -> None:
    """Append each portion to its topic; a topic that is full goes on in a new one."""
    known = {t.id: t for t in store.roster(work.session)} | work.touched
    by_name = {t.name: t.id for t in work.touched.values()}
    for portion in portions:
        topic_id = portion.topic or by_name.get(portion.name)
        topic = known[topic_id] if topic_id else _new_topic(work, portion.name, portion.brief)
        sizes = [sum(map(size, block.records)) for block in portion.blocks]
        if topic.count and topic.tokens + sizes[0] > limit:
            topic = _continuation(topic, known)
        if topic.count and topic.tokens + sizes[0] > limit:
            topic = _new_topic(work, topic.name, topic.brief, parent=topic.id)
        for start, stop in chunks(sizes, limit, topic.tokens):
            if start:
                topic = _new_topic(work, topic.name, topic.brief, parent=topic.id)
            blocks = portion.blocks[start:stop]
            topic = store.move(topic, blocks)
            topic = topic.model_copy(update={"tokens": topic.tokens + sum(sizes[start:stop])})
            work.touched[topic.id] = known[topic.id] = topic
            work.moved.setdefault(topic.id, []).extend(blocks)
            work.session = store.add_days(work.session, topic, blocks)
        by_name[topic.name] = topic.id


def _continuation(topic: Topic, known: Mapping[str, Topic]) -> Topic:
    """Where a full topic goes on by now: its newest continuation, or itself."""
    while following := [t for t in known.values() if t.parent == topic.id and t.status == "open"]:
        topic = following[-1]
    return topic


def _new_topic(work: _Work, name: str, brief: str, parent: str | None = None) -> Topic:
    number = work.session.topics + 1
    work.session = work.session.model_copy(update={"topics": number})
    return Topic(id=f"t{number}", name=name, brief=brief, parent=parent)


def _relate(work: _Work, store: SessionStore) -> None:
    """Note which topics were quoted for the messages that a topic got."""
    quoted = {n.after: [t.topic for t in n.topics if t.quotes] for n in store.notes(work.session)}
    for topic_id, blocks in work.moved.items():
        topic = work.touched[topic_id]
        ids = [i for b in blocks for i in quoted.get(b.first, ()) if i != topic_id]
        related = tuple(dict.fromkeys((*topic.related, *ids)))[-_RELATED:]
        work.touched[topic_id] = topic.model_copy(update={"related": related})


def _write_briefs(
    work: _Work, store: SessionStore, roles: Roles
) -> Generator[Sequence[Ask], Sequence[Outcome], None]:
    topics = list(work.touched.values())
    requests = [
        BriefRequest(work.session.id, t, store.topic_records(t), work.session.language)
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
            named = {"name": brief.name or topic.name, "brief": brief.text}
            work.touched[topic.id] = topic.model_copy(update=named)


def _events(blocks: Sequence[LogicalBlock], touched: dict[str, Topic]) -> list[str]:
    if not blocks:
        return ["dropped the recall notes to make room"]
    names = ", ".join(f"{t.id} “{t.name}”" for t in touched.values())
    return [f"split m{blocks[0].first}-m{blocks[-1].last} into {names}"]
