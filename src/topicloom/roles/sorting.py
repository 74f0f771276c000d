"""Sorting rounds into topics.

Imported chats keep to themselves, an arbiter rules on doubtful boundaries, and the splitter is
asked, and asked again for what it left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from topicloom.effects import Step
from topicloom.roles.arbiter import ARBITER
from topicloom.roles.calls import ask_all, ask_role
from topicloom.roles.split_work import SplitWork
from topicloom.roles.splitter import SPLITTER, SplitRequest, Splitter, name_rounds
from topicloom.search.embedder import Embedder
from topicloom.state.hierarchy import add_full_names, find_continuation
from topicloom.state.receipt import Call
from topicloom.state.rounds import LOOK_BACK, Round, Ruling, group_rounds
from topicloom.state.safe_text import cut
from topicloom.state.session import Session
from topicloom.state.splitting import (
    LOOSE_ENDS,
    Portion,
    cut_to_size,
    find_before,
    follow_segments,
    group_assignments,
    merge_assignments,
    name_opened,
)
from topicloom.state.topic_names import make_distinct
from topicloom.state.topics import Topic, TopicTable, select_shown
from topicloom.topics.naming import NAME_LIMIT
from topicloom.topics.session_index import SessionIndex
from topicloom.topics.split_draft import SplitDraft

_REPEATS = 3
"""Times that a splitter is asked again for what it left out, in halves."""
_FRUITLESS = 2
"""Calls one after another that sort nothing, past which a splitter is asked no more."""
_BOUNDARIES = 64
"""Rulings of an arbiter that a session remembers, for what is put right later."""


def sort_tail(
    work: SplitWork,
    rounds: Sequence[Round],
    find_index: Callable[[Session, TopicTable], SessionIndex],
    most: int,
) -> Step[None]:
    """Move rounds of the tail into topics: imported chats unasked, all others by the splitter.

    Args:
        work: Of the split.
        rounds: In order.
        find_index: Gives the index of what is in topics by now.
        most: Topics that the splitter is offered at once, about.
    """
    rounds = yield from rule_boundaries(work, move_chats(work, rounds))
    draft, continues = work.draft, work.adsorber.continuity(rounds)
    for part in cut_to_size(rounds, *work.rooms.splitter):
        table, session = draft.table, draft.session
        known = [*table.open(), *table.loose()]
        index = find_index(session, table)
        affinities = index.affinities(rounds[part], continues[part], known)
        active = frozenset(session.active) | frozenset(draft.touched)
        previous = draft.before(rounds[part][0].first)
        at_hand = active if previous is None else active | {previous}
        shown = select_shown(table.open(), affinities.best(), most, always=at_hand)
        request = SplitRequest(
            session=session.id,
            rounds=rounds[part],
            continues=continues[part],
            affinities=affinities,
            topics=add_full_names(shown, table.topics),
            active=active,
            previous=previous,
            language=session.language,
        )
        draft.move((yield from sort_rounds(work, request)))


def move_chats(work: SplitWork, rounds: Sequence[Round]) -> list[Round]:
    """Move the rounds of imported chats into the chats' topics; returns the other rounds.

    A topic that gets too large is divided later, like any other.
    """
    draft, others, moved = work.draft, list[Round](), set[str]()
    for chat, run in groupby(rounds, key=lambda round_: round_.chat):
        if chat is None:
            others += run
            continue
        held = list(run)
        topic = _find_topic(draft, chat) or _open_topic(draft, chat, held, work.embedder)
        draft.put(topic, held, fresh=True)
        moved.add(chat)
    titles = {chat: t for chat, t in draft.session.titles.items() if chat not in moved}
    draft.session = draft.session.model_copy(update={"titles": titles})
    return others


def _find_topic(draft: SplitDraft, chat: str) -> Topic | None:
    """The open topic in which a chat goes on; None for a new one, or if it was archived."""
    topics = draft.topics
    opened = [topic.id for topic in topics.values() if topic.chat == chat]
    return find_continuation(opened[-1], topics) if opened else None


def _open_topic(draft: SplitDraft, chat: str, rounds: Sequence[Round], embedder: Embedder) -> Topic:
    """A topic under the title of the chat, or under a name for it that brief writers may change."""
    title = draft.session.titles.get(chat, "")
    name = title or name_rounds(rounds, embedder)
    taken = [topic.name for topic in draft.topics.values()]
    topic = draft.create(make_distinct(name, taken, NAME_LIMIT), "")
    return topic.model_copy(update={"chat": chat, "titled": bool(title)})


def rule_boundaries(work: SplitWork, rounds: Sequence[Round]) -> Step[list[Round]]:
    """The rounds, with the arbiter's rulings on all that the adsorber is in doubt about.

    Where there is none, or it fails, the adsorber's likelier answer stands.
    """
    arbiter, draft, tail = work.roles.get(ARBITER), work.draft, work.draft.session.tail
    if arbiter is None:
        return list(rounds)
    before = group_rounds(draft.store.messages(draft.session, tail - LOOK_BACK, tail - 1))
    doubts = work.adsorber.doubts(before, rounds)
    outcomes = yield from ask_all("arbiter", arbiter, list(doubts.values()), waits=work.waits)
    work.calls.extend(call for _, call in outcomes)
    answers = dict(zip(doubts, (answer for answer, _ in outcomes), strict=True))
    ruled = [replace(round_, ruling=_to_ruling(answers.get(round_.first))) for round_ in rounds]
    boundaries = (*draft.session.boundaries, *(one.first for one in ruled if one.ruling == "opens"))
    draft.session = draft.session.model_copy(update={"boundaries": boundaries[-_BOUNDARIES:]})
    return ruled


def _to_ruling(continues: float | None) -> Ruling | None:
    if continues is None:
        return None
    return "opens" if continues < 0.5 else "continues"


def sort_rounds(
    work: SplitWork, request: SplitRequest, opened: Sequence[Portion] = ()
) -> Step[list[Portion]]:
    """Ask the splitter; ask again for what it left out, in halves; then the segments decide.

    Each answer may use the topics that the ones before it opened, and those in `opened`, which are
    part of what is returned. A splitter that was late is not asked again. What no answer sorts goes
    on with what the adsorber says it goes on with, and the stand-in sorts the rest. Should even
    that fail, rounds stay with the ones before them.
    """
    portions, left, fruitless = list(opened), list(request.rounds), 0
    for repeat in range(1 + _REPEATS):
        middle = (len(left) + 1) // 2
        parts, left = ([left[:middle], left[middle:]] if repeat else [left]), []
        for part in filter(None, parts):
            if fruitless < _FRUITLESS:
                asked = _ask(work, work.roles[SPLITTER], request, part, portions)
                portions, rest = yield from asked
                fruitless = 0 if len(rest) < len(part) else fruitless + 1
                part = rest
            left += part
    if left:
        portions = yield from _stand_in(work, request, left, portions)
    return portions


def _stand_in(
    work: SplitWork, request: SplitRequest, left: Sequence[Round], portions: Sequence[Portion]
) -> Step[list[Portion]]:
    """The portions, with the rounds that no answer sorted; a call says how many these were."""
    splitter, calls = work.roles.stand_in(SPLITTER), work.calls
    odds = {b.first: one for b, one in zip(request.rounds, request.continues, strict=True)}
    portions, rest = follow_segments(portions, left, odds)
    if rest and splitter is not None:
        portions, rest = yield from _ask(work, splitter, request, rest, portions)
    else:
        calls.append(Call(role="splitter"))
    count = sum(len(round_.messages) for round_ in left)
    note = f"{count} messages that no answer sorted go by the adsorber's segments"
    calls[-1] = calls[-1].model_copy(update={"remarks": (*calls[-1].remarks, note)})
    if rest:  # no splitter sorts them, but nothing may be lost
        name = cut(rest[0].text.strip(), 40) or "…"
        before = find_before(portions, rest[0]) or Portion(request.previous, name, "", ())
        portions = merge_assignments([*portions, replace(before, rounds=tuple(rest))])
    return portions


def _ask(
    work: SplitWork,
    splitter: Splitter,
    request: SplitRequest,
    rounds: Sequence[Round],
    portions: Sequence[Portion],
) -> Step[tuple[list[Portion], list[Round]]]:
    """The portions with what a splitter says of some of the rounds, and those that it left out.

    It is shown the topics that the portions open under ids that hold for this call.
    """
    chosen = {b.first for b in rounds}
    places = [place for place, b in enumerate(request.rounds) if b.first in chosen]
    free = 1 + max((int(t.id[1:]) for t in request.topics), default=0)
    new = [p for p in portions if p.topic is None]
    opened = [Topic(id=f"t{n}", name=p.name, brief=p.brief) for n, p in enumerate(new, free)]
    before = find_before(portions, rounds[0])
    asked = replace(
        request,
        rounds=rounds,
        continues=[request.continues[i] for i in places],
        affinities=request.affinities and request.affinities.of_rounds(places),
        topics=[*opened, *request.topics],
        active=request.active | {t.id for t in opened},
        previous=before.topic if before else None if places[0] else request.previous,
    )
    answer, call = yield from ask_role("splitter", splitter, asked, waits=work.waits)
    work.calls.append(call)
    known = {t.id for t in request.topics} | (set() if request.dividing else {LOOSE_ENDS})
    named = name_opened(answer or (), {t.id: t.name for t in opened})
    found, left = group_assignments(rounds, named, known)
    return merge_assignments([*portions, *found]), left
