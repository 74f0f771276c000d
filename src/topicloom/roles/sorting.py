"""Sorting rounds into topics: what the splitter is asked, and asked once more for what it left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topicloom.effects import Step
from topicloom.roles.calls import ask_role
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SPLITTER, SplitRequest
from topicloom.roles.waits import TurnWaits
from topicloom.state.hierarchy import add_full_names
from topicloom.state.receipt import Call
from topicloom.state.rounds import Round
from topicloom.state.splitting import LOOSE_ENDS, Portion, group_assignments, merge_assignments
from topicloom.state.topics import select_shown
from topicloom.topics.session_index import SessionIndex
from topicloom.topics.split_draft import SplitDraft


def make_split_request(
    draft: SplitDraft,
    index: SessionIndex,
    rounds: Sequence[Round],
    segments: Sequence[int],
    continues: Sequence[float],
    most: int,
) -> SplitRequest:
    """The request for some rounds of the tail.

    Args:
        draft: The split so far.
        index: Has what is in topics by now.
        rounds: In order.
        segments: The number of the adsorber's segment that each lies in.
        continues: Log odds that each goes on with the one before it.
        most: Topics that are offered, about.
    """
    table, session = draft.table, draft.session
    affinities = index.affinities(rounds, continues, [*table.open(), *table.loose()])
    active = frozenset(session.active) | frozenset(draft.touched)
    previous = draft.before(rounds[0].first)
    at_hand = active if previous is None else active | {previous}
    shown = select_shown(table.open(), affinities.best(), most, always=at_hand)
    return SplitRequest(
        session=session.id,
        rounds=rounds,
        segments=segments,
        affinities=affinities,
        topics=add_full_names(shown, table.topics),
        active=active,
        previous=previous,
        language=session.language,
    )


def sort_rounds(
    roles: Roles, request: SplitRequest, calls: list[Call], waits: TurnWaits
) -> Step[list[Portion]]:
    """Ask the splitter; ask once more for what it left out; then the stand-in decides.

    One that was late is not asked again. Should even that fail, rounds stay with the ones before
    them. Adds to `calls`.
    """
    known: set[str] = {t.id for t in request.topics}
    known |= set() if request.dividing else {LOOSE_ENDS}
    place = {b.first: i for i, b in enumerate(request.rounds)}
    portions: list[Portion] = []
    left = list(request.rounds)
    for splitter in (roles[SPLITTER], *roles.in_turn(SPLITTER)):
        if not left:
            break
        places = [place[b.first] for b in left]
        asked = replace(
            request,
            rounds=left,
            segments=[request.segments[i] for i in places],
            affinities=request.affinities and request.affinities.of_rounds(places),
            previous=_find_before(request, portions, left[0]).topic,
        )
        answer, call = yield from ask_role("splitter", splitter, asked, waits=waits)
        calls.append(call)
        found, left = group_assignments(left, answer or (), known)
        portions += found
    if left:  # no splitter sorts them, but nothing may be lost
        before = _find_before(request, portions, left[0])
        portions.append(replace(before, rounds=tuple(left)))
    return merge_assignments(portions)


def _find_before(request: SplitRequest, portions: Sequence[Portion], round_: Round) -> Portion:
    """The portion of the round before a round, without its rounds; else a new one for it."""
    for portion in portions:
        if any(b.last == round_.first - 1 for b in portion.rounds):
            return replace(portion, rounds=(), also={})
    name = round_.text.strip()[:40] or "…"
    return Portion(request.previous, name, "", ())
