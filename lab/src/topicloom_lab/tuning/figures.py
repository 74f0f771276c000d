"""Figures of a turn log: searches for what was forgotten, active topics, quotes, recall's share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from topicloom import ActivationPolicy, Receipt
from topicloom_lab.tuning.suggesting import FLAP
from topicloom_lab.tuning.turnlog import (
    quoted_in,
    ranking,
    searched_for_cue,
    sought_in,
    with_readings,
)

LARGE = 0.4
"""Share of the prompt from which recall takes too much of it (the design's value)."""
_OFTEN = 0.25
"""Share of the prompts from which that is often."""
_PARTS = tuple(part / 20 for part in range(19, 4, -1))
"""Parts of what a turn's recall was at most, that are tried as its limit."""
_TURNS = 30
"""Prompts that anything is suggested from."""


@dataclass(frozen=True, slots=True)
class RecallLimit:
    """A smaller `recall_share`, and what it would have done."""

    share: float
    """Share of the main window that one turn's recall may add."""
    large: float
    """Share of the prompts of which recall would still have taken more than `LARGE`."""
    kept: float
    """Share of the recalled tokens that would have been left."""


def note_share(sections: dict[str, int]) -> float:
    """The part of a prompt that recall notes take, 0 to 1."""
    return sections.get("notes", 0) / max(1, sum(sections.values()))


def large_share(receipts: Sequence[Receipt]) -> float:
    """In how many of the prompts recall takes more than `LARGE`."""
    shares = [note_share(r.sections) for r in receipts if r.sections]
    return sum(share > LARGE for share in shares) / max(1, len(shares))


def recall_limit(receipts: Sequence[Receipt]) -> RecallLimit | None:
    """The largest limit that was tried under which recall seldom takes too much of the prompt.

    What a turn added to the notes is cut to the limit and summed up until the next split.

    Returns:
        The limit; None if recall does not often take too much, no limit would help, or there are
        too few prompts to tell.
    """
    prompts = [r for r in receipts if r.sections and r.window]
    if len(prompts) < _TURNS or large_share(prompts) <= _OFTEN:
        return None
    added = _added(prompts)
    most = max(tokens / r.window for tokens, r in zip(added, prompts, strict=True))
    limits = (_limited(prompts, added, round(part * most, 3)) for part in _PARTS)
    return next((limit for limit in limits if limit.large <= _OFTEN), None)


def _added(prompts: Sequence[Receipt]) -> list[int]:
    """The tokens that each turn's recall added: the rest of the notes was there before."""
    added, before = [], 0
    for receipt in prompts:
        notes = receipt.sections.get("notes", 0)
        added.append(notes - before if notes >= before and not receipt.split else notes)
        before = notes
    return added


def _limited(prompts: Sequence[Receipt], added: Sequence[int], share: float) -> RecallLimit:
    large, kept, notes, before = 0, 0, 0, 0
    for receipt, tokens in zip(prompts, added, strict=True):
        begun = receipt.split or receipt.sections.get("notes", 0) < before
        before = receipt.sections.get("notes", 0)
        some = min(tokens, round(share * receipt.window))
        notes = some if begun else notes + some
        kept += some
        rest = sum(receipt.sections.values()) - before
        large += notes > LARGE * (notes + rest)
    return RecallLimit(share, large / len(prompts), kept / max(1, sum(added)))


@dataclass(frozen=True, slots=True)
class Amnesia:
    """Turns in which something had been forgotten."""

    cues: int
    """Turns in which the user said that something was forgotten."""
    asked: int
    """Searches that the main model asked for."""
    empty: int
    """Turns that searched and activated nothing."""
    dormant: int
    """Turns in which a search found a dormant topic that was then quoted."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """The number of active topics, and signs that there are too many or too few."""

    usual: float
    """Active topics of a turn, on average."""
    most: int
    """The most that there were."""
    full: int
    """Turns that ended with as many as there may be."""
    reads: int
    """Readings of topics."""
    quoting: int
    """Readings of which something was quoted."""
    under: int
    """Readings of topics that scored below the threshold of their rank, and stayed active."""
    stretch: float
    """Turns in a row that a topic did so, on average."""
    longest: int
    """The most turns in a row."""
    activated: int
    """Topics that the index or a search activated."""
    flaps: int
    """Those that had been deactivated at most `FLAP` turns before."""


@dataclass(frozen=True, slots=True)
class Quotes:
    """The quotes that readers choose."""

    originals: float
    """Originals quoted in a turn, on average."""
    topics: float
    """Topics quoted in a turn, on average."""
    most: int
    """The most originals in a turn."""
    none: int
    """Turns that quoted nothing."""
    notes: float
    """Share of the prompt that recall takes, in the median turn."""
    large: float
    """Share of the turns in which it takes more than two fifths."""


@dataclass(frozen=True, slots=True)
class LogFigures:
    """A log in figures."""

    turns: int
    """Turns in the log."""
    read: int
    """Turns in which topics were read: the rest is about these."""
    amnesia: Amnesia
    """Signs that thresholds are too high."""
    crowd: Crowd
    """Signs that they are too low, or that the ceiling is."""
    quotes: Quotes
    """Signs that too much or too little is quoted."""


def figures_of(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> LogFigures:
    """The figures of a log of consecutive turns, in order; the settings made it."""
    read = with_readings(receipts)
    return LogFigures(
        turns=len(receipts),
        read=len(read),
        amnesia=_amnesia(receipts, in_force),
        crowd=_crowd(receipts, read, in_force),
        quotes=_quotes(read),
    )


def _amnesia(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> Amnesia:
    searching = [r for r in receipts if r.searches]
    cues = sum(map(searched_for_cue, searching))
    return Amnesia(
        cues=cues,
        asked=sum(len(r.searches) for r in searching) - cues,
        empty=sum(not any(s.found for s in r.searches) for r in searching),
        dormant=sum(not sought_in(r, in_force).isdisjoint(quoted_in(r)) for r in searching),
    )


def _crowd(
    receipts: Sequence[Receipt], read: Sequence[Receipt], in_force: ActivationPolicy
) -> Crowd:
    counts = [len(r.active) for r in read]
    stretches = _stretches(read, in_force)
    activated, flaps = _count_activations(receipts)
    return Crowd(
        usual=mean(counts or [0]),
        most=max(counts, default=0),
        full=sum(count >= in_force.ceiling for count in counts),
        reads=sum(len(r.scores) for r in read),
        quoting=sum(len(quoted_in(r).keys() & r.scores.keys()) for r in read),
        under=sum(stretches),
        stretch=mean(stretches or [0]),
        longest=max(stretches, default=0),
        activated=activated,
        flaps=flaps,
    )


def _stretches(read: Sequence[Receipt], in_force: ActivationPolicy) -> list[int]:
    """The numbers of turns in a row for which topics stayed active under their threshold."""
    ended: list[int] = []
    running: dict[str, int] = {}
    for receipt in read:
        under = {
            topic
            for topic, place in ranking(receipt.scores).items()
            if topic in receipt.active and receipt.scores[topic] < in_force.threshold(place)
        }
        ended += [turns for topic, turns in running.items() if topic not in under]
        running = {topic: running.get(topic, 0) + 1 for topic in under}
    return [*ended, *running.values()]


def _count_activations(receipts: Sequence[Receipt]) -> tuple[int, int]:
    """The number of topics activated other than by a split, and of those too soon."""
    activated = flaps = 0
    dormant: dict[str, int] = {}
    for receipt in receipts:
        back = set(receipt.activated).difference(receipt.split)
        activated += len(back)
        flaps += sum(receipt.turn - dormant[topic] <= FLAP for topic in back if topic in dormant)
        dormant |= dict.fromkeys(receipt.deactivated, receipt.turn)
    return activated, flaps


def _quotes(read: Sequence[Receipt]) -> Quotes:
    quoted = [quoted_in(receipt) for receipt in read]
    counts = [sum(found.values()) for found in quoted]
    return Quotes(
        originals=mean(counts or [0]),
        topics=mean([len(found) for found in quoted] or [0]),
        most=max(counts, default=0),
        none=sum(not count for count in counts),
        notes=median([note_share(r.sections) for r in read if r.sections] or [0.0]),
        large=large_share(read),
    )
