"""Boundaries that an arbiter decides about, before something is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from topicloom.effects import Step
from topicloom.roles.arbiter import ARBITER
from topicloom.roles.calls import ask_all
from topicloom.roles.split_work import SplitWork
from topicloom.state.rounds import Round, Ruling, group_rounds
from topicloom.topics.adsorber import LOOK_BACK

_BOUNDARIES = 64
"""Rulings of an arbiter that a session remembers, for what is put right later."""


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
