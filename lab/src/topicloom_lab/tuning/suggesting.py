"""Finds the settings of the activation that a log speaks for, by replaying it with others.

Amnesia counts for more than cost (better a topic too many than one forgotten). If
searches often found dormant topics, the fewest misses are looked for; otherwise the fewest readings
that cost no measurable recall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from topicloom.state.activation import ActivationPolicy
from topicloom_lab.tuning.replaying import Replay, replay
from topicloom_lab.tuning.turnlog import Observation

Setting = Literal["base", "step", "sleep_share", "floor", "usual", "ceiling"]
Aim = Literal["recall", "cost"]
"""The aim: fewer misses, or fewer readings."""

_STEPS: Mapping[Setting, float] = {
    "base": 0.05,
    "step": 0.01,
    "sleep_share": 0.1,
    "floor": 1,
    "usual": 2,
    "ceiling": 5,
}
"""The step by which a setting is moved."""
_LEAST: Mapping[Setting, float] = {"base": 0.05, "sleep_share": 0.1, "usual": 1, "ceiling": 1}
"""Smallest values that are tried; 0 for the others."""
_MOVES = (-4, -2, -1, 1, 2, 4)
"""Steps by which it is moved in the search."""
_ROUNDS = 4
"""Settings that are changed one after the other at most."""
_NEWEST = 1_000
"""Newest turns that are replayed: settings are for what goes on now."""

_LOSS = 0.02
"""Share of the topics quoted that cheaper settings may miss more, with 95 % confidence."""
_CONFIDENCE = 3
"""None seen in n speaks for less than 3/n at 95 % (the rule of three)."""
_WORTH = 0.05
"""Share of the readings, or of the misses, that a change has to save to be worth while."""
_DEARER = 0.25
"""Share of the readings by which settings that miss less may cost more."""
_GUESSED = 0.1
"""Share of the readings whose scores may be guessed where readings are to be saved."""
_OFTEN, _SOME = 0.02, 3
"""Share of the turns, and their number, from which amnesia is no accident."""
_LIKE = 0.9
"""Likeness of a replay with the settings in force, below which the log was made with others."""
_TURNS = 30
"""Turns with readings that anything is suggested from."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Settings that a log speaks for."""

    aim: Aim
    """The aim."""
    changes: Mapping[Setting, float]
    """The settings that differ, with their new values; none if those in force are best."""
    replay: Replay
    """Their replay."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The conclusions of the replays."""

    in_force: Replay
    """The replay of the settings in force."""
    others: tuple[tuple[Setting, float, Replay], ...]
    """The effect of changing one of them: the setting, its value, and the replay."""
    suggestion: Suggestion | None
    """The change to make; None if the log does not say."""
    reason: str = ""
    """Why it does not."""


def advise(log: Sequence[Observation], in_force: ActivationPolicy) -> Advice:
    """Replay a log with other settings, and suggest some if it speaks for them.

    Args:
        log: Consecutive turns.
        in_force: The settings that the log was made with.
    """
    log = log[-_NEWEST:]
    base = replay(log, in_force)
    others = tuple(
        (setting, value, replay(log, policy))
        for setting, value, policy in alternatives(in_force, (-2, 2))
    )
    reason = _silence(log, base)
    if reason:
        return Advice(base, others, None, reason)
    sought = sum(bool(seen.sought) for seen in log)
    read = sum(bool(seen.scores) for seen in log)
    aim: Aim = "recall" if sought >= max(_SOME, _OFTEN * read) else "cost"
    best = _best(log, base, aim)
    return Advice(base, others, Suggestion(aim, _changes(best.policy, in_force), best))


def alternatives(
    policy: ActivationPolicy, moves: Sequence[int]
) -> list[tuple[Setting, float, ActivationPolicy]]:
    """The policies in which one setting differs by some steps, with its name and value."""
    found: list[tuple[Setting, float, ActivationPolicy]] = []
    for setting, step in _STEPS.items():
        for move in moves:
            value = round(getattr(policy, setting) + move * step, 4)
            other = policy.model_copy(update={setting: value})
            ordered = other.floor <= other.usual <= other.ceiling
            if ordered and value >= _LEAST.get(setting, 0):
                found.append((setting, value, other))
    return found


def needed(log: Sequence[Observation]) -> int:
    """The number of further turns that a suggestion needs, at the rate of quotes so far."""
    read = [seen for seen in log[-_NEWEST:] if seen.scores]
    wanted = sum(len(seen.wanted) for seen in read)
    quotes = math.ceil(_CONFIDENCE / _LOSS)
    if not wanted:
        return _TURNS
    return max(0, _TURNS - len(read), math.ceil((quotes - wanted) * len(read) / wanted))


def _silence(log: Sequence[Observation], base: Replay) -> str:
    """Why a log says nothing about settings; "" if it does."""
    more = needed(log)
    if more:
        return f"too little was read and quoted so far: about {more} more turns are needed"
    if base.likeness < _LIKE:
        return (
            f"replayed with the settings in force, the active topics are those of the log by "
            f"{base.likeness:.0%} only: it was made with other settings"
        )
    return ""


def _best(log: Sequence[Observation], base: Replay, aim: Aim) -> Replay:
    """Change one setting after the other, each time the one that helps most.

    What is far away is found from the defaults, which are tried too.
    """
    best = base
    for _ in range(_ROUNDS):
        policies = [policy for _, _, policy in alternatives(best.policy, _MOVES)]
        tried = [replay(log, policy) for policy in (*policies, ActivationPolicy())]
        fit = [other for other in tried if _fits(other, base, aim)]
        better = min([best, *fit], key=lambda r: _cost(r, aim))
        saved = _cost(best, aim)[0] - _cost(better, aim)[0]
        if saved <= 0 or saved < _WORTH * _cost(base, aim)[0]:
            break
        best = better
    return best


def _fits(other: Replay, base: Replay, aim: Aim) -> bool:
    """True if settings may be suggested at all."""
    if aim == "recall":
        return other.reads <= (1 + _DEARER) * base.reads
    more = max(0, other.missed - base.missed)
    sure = other.guessed <= _GUESSED * other.reads
    return sure and more + _CONFIDENCE <= _LOSS * base.wanted


def _cost(replayed: Replay, aim: Aim) -> tuple[int, ...]:
    key = (replayed.missed, replayed.reads) if aim == "recall" else (replayed.reads,)
    return (*key, replayed.flaps)


def _changes(policy: ActivationPolicy, in_force: ActivationPolicy) -> dict[Setting, float]:
    return {s: getattr(policy, s) for s in _STEPS if getattr(policy, s) != getattr(in_force, s)}
