"""What a log says that holds whatever the settings are: scores, needs, and what began or ended.

How the index rated a topic that it might wake is known where readers are embedded: their score is
that rating. Of a model's reading only a bound is known, from whether the index woke the topic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from topicloom.evaluation.tuning.turnlog import (
    quoted_in,
    ranking,
    read_without_model,
    sought_in,
    topics_in,
)
from topicloom.state.activation import ActivationPolicy
from topicloom.state.receipt import Receipt


@dataclass(frozen=True, slots=True)
class Observation:
    """One turn of a log."""

    turn: int
    """Number of the turn."""
    scores: Mapping[str, float]
    """Relevance of the topics that were read; none where nothing was."""
    ratings: Mapping[str, float]
    """How the index rated them, as far as the log says."""
    wanted: frozenset[str]
    """Topics that were quoted."""
    sought: frozenset[str]
    """Topics that only a search woke."""
    fresh: tuple[str, ...]
    """Topics that messages moved to, or that began."""
    ended: frozenset[str]
    """Topics that were active and are none any more, without having fallen asleep."""
    awake: frozenset[str]
    """Topics that were active when the turn ended."""
    known: frozenset[str]
    """These and those that fell asleep: the log says what they scored, or that none was read."""
    background: float
    """What a topic scores that has nothing to say: the median of those that were not quoted."""


def observe(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> list[Observation]:
    """Take from receipts what holds whatever the settings are.

    Args:
        receipts: Of consecutive turns, in order.
        in_force: The settings that the log was made with.
    """
    earlier = [None, *receipts]
    return [_observation(before, r, in_force) for before, r in zip(earlier, receipts, strict=False)]


def _observation(
    before: Receipt | None, receipt: Receipt, in_force: ActivationPolicy
) -> Observation:
    were, there = set(before.active) if before else set(), topics_in(receipt)
    began = there - were - set(receipt.woken)
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
        awake=frozenset(receipt.active),
        known=frozenset(there),
        background=median(quiet or receipt.scores.values() or [0.0]),
    )


def _ratings(receipt: Receipt, sought: set[str], in_force: ActivationPolicy) -> dict[str, float]:
    ranked, ratings = ranking(receipt.scores), dict(receipt.scores)
    by_model = receipt.scores.keys() - read_without_model(receipt)
    for topic in by_model.intersection(receipt.woken).difference(receipt.split):
        needed = in_force.threshold(ranked[topic])
        under = min(ratings[topic], math.nextafter(needed, -math.inf))
        ratings[topic] = under if topic in sought else max(ratings[topic], needed)
    return ratings
