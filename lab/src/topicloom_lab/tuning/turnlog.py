"""The turn log that is tuned on: receipts in order, and what they say of topics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from topicloom import ActivationPolicy, InputError, Receipt


def read_log(path: Path) -> list[Receipt]:
    """The receipts in a file of JSON lines, in order of their turns.

    Of two receipts of one turn the later counts: a session that went back to an older checkpoint
    has taken the turn anew. Lines without anything are passed over.

    Args:
        path: One receipt a line, as `topicloom receipt NAME --json` prints them; a session's own
            `turns.jsonl` will do.

    Raises:
        InputError: It cannot be read, or a line is no receipt.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "cannot read the turn log {path}: {error}", path=path, error=error
        ) from error
    return in_order(
        _receipt(line, path, number) for number, line in enumerate(lines, 1) if line.strip()
    )


def in_order(receipts: Iterable[Receipt]) -> list[Receipt]:
    """Receipts by turn, the last of each turn."""
    found = {receipt.turn: receipt for receipt in receipts}
    return [found[turn] for turn in sorted(found)]


def names_in(receipts: Iterable[Receipt]) -> dict[str, str]:
    """The newest names of topics, as far as they were ever quoted, by id."""
    return {note.topic: note.name for receipt in receipts for note in receipt.quoted}


def topics_in(receipt: Receipt) -> set[str]:
    """Topics that were active at the end of a turn, or deactivated in it."""
    return {*receipt.active, *receipt.deactivated}


def quoted_in(receipt: Receipt) -> dict[str, int]:
    """The number of originals that a turn quoted from each topic."""
    return {note.topic: len(note.quotes) for note in receipt.quoted if note.quotes}


def searched_for_cue(receipt: Receipt) -> bool:
    """True if the turn searched because the user said that something was forgotten.

    Such a search asks the router before the main model has said anything.
    """
    roles = [call.role for call in receipt.calls]
    first = roles.index("responder") if "responder" in roles else len(roles)
    return bool(receipt.searches) and "router" in roles[:first]


def sought_in(receipt: Receipt, policy: ActivationPolicy) -> set[str]:
    """Dormant topics that a search activated: the message alone had not.

    Where no model reads, a topic's score is what the index made of it, so one that would have
    activated by its score is not among them.

    The settings are those that were in force.
    """
    found = {topic for search in receipt.searches for topic in search.found}
    ranked = ranking(receipt.scores)
    embedded = read_without_model(receipt)
    return {
        topic
        for topic in found.intersection(receipt.activated).difference(receipt.split)
        if topic not in embedded
        or receipt.scores[topic] < policy.threshold(ranked[topic])
        or ranked[topic] >= policy.usual
    }


def read_without_model(receipt: Receipt) -> set[str]:
    """Topics whose score is the index's own rating."""
    readers = {c.topic: c.model for c in receipt.calls if c.role == "reader" and not c.failure}
    # A call that read several topics names none.
    together = readers.get(None)
    return {topic for topic in receipt.scores if readers.get(topic, together) == "embedded"}


def ranking(scores: Mapping[str, float]) -> dict[str, int]:
    """The place of each topic by its score, from 0."""
    return {t: place for place, t in enumerate(sorted(scores, key=lambda t: (-scores[t], t)))}


def with_readings(receipts: Sequence[Receipt]) -> list[Receipt]:
    """The turns in which topics were read: there are none until the first split."""
    return [receipt for receipt in receipts if receipt.scores]


def _receipt(line: str, path: Path, number: int) -> Receipt:
    try:
        return Receipt.model_validate_json(line)
    except ValidationError as error:
        raise InputError(
            "line {number} of {path} is no receipt: {error}. Each line has to "
            "be one, as `topicloom receipt NAME --json` prints them",
            number=number,
            path=path,
            error=error.errors()[0]["msg"],
        ) from error


@dataclass(frozen=True, slots=True)
class Observation:
    """One turn of a log."""

    turn: int
    """Number of the turn."""
    scores: Mapping[str, float]
    """Relevance of the topics that were read; none where nothing was."""
    ratings: Mapping[str, float]
    """Their ratings by the index, as far as the log says."""
    wanted: frozenset[str]
    """Topics that were quoted."""
    sought: frozenset[str]
    """Topics that only a search activated."""
    fresh: tuple[str, ...]
    """Topics that messages moved to, or that began."""
    ended: frozenset[str]
    """Topics that were active and are none any more, without having been deactivated."""
    active: frozenset[str]
    """Topics that were active when the turn ended."""
    known: frozenset[str]
    """These and the deactivated ones: the log has their scores, or says that none was read."""
    background: float
    """The score of a topic that has nothing to say: the median of those that were not quoted."""


def observe(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> list[Observation]:
    """Take from receipts of consecutive turns, in order, what holds whatever the settings are."""
    earlier = [None, *receipts]
    return [_observation(before, r, in_force) for before, r in zip(earlier, receipts, strict=False)]


def _observation(
    before: Receipt | None, receipt: Receipt, in_force: ActivationPolicy
) -> Observation:
    were, there = set(before.active) if before else set(), topics_in(receipt)
    began = there - were - set(receipt.activated)
    sought = sought_in(receipt, in_force)
    quoted = quoted_in(receipt).keys() & receipt.scores.keys()
    quiet = [score for topic, score in receipt.scores.items() if topic not in quoted]
    return Observation(
        turn=receipt.turn,
        scores=receipt.scores,
        ratings=_ratings(receipt, sought, in_force),
        wanted=frozenset(quoted),
        sought=frozenset(sought & quoted),
        fresh=tuple(sorted(began | set(receipt.split))),
        ended=frozenset(were - there),
        active=frozenset(receipt.active),
        known=frozenset(there),
        background=median(quiet or receipt.scores.values() or [0.0]),
    )


def _ratings(receipt: Receipt, sought: set[str], in_force: ActivationPolicy) -> dict[str, float]:
    ranked, ratings = ranking(receipt.scores), dict(receipt.scores)
    by_model = receipt.scores.keys() - read_without_model(receipt)
    for topic in by_model.intersection(receipt.activated).difference(receipt.split):
        needed = in_force.threshold(ranked[topic])
        under = min(ratings[topic], math.nextafter(needed, -math.inf))
        ratings[topic] = under if topic in sought else max(ratings[topic], needed)
    return ratings
