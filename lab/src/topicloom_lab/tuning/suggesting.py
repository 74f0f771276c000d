"""Finds the settings of the activation that a log speaks for, by replaying it with others.

Amnesia counts for more than cost (better a topic too many than one forgotten). If
searches often found dormant topics, the fewest misses are looked for; otherwise the fewest readings
that cost no measurable recall.

A log holds the score of every topic that was read, so settings under which fewer topics are active
are replayed on scores that were measured. Where others keep a topic active for longer, it is taken
to score what topics did that were read in the same turn and not quoted, and counted as guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Literal

from topicloom import ActivationPolicy
from topicloom.lab import INITIAL_RELEVANCE, FilledText, activate_candidates, update_activation
from topicloom_lab.tuning.turnlog import Observation

FLAP = 5
"""Turns within which a topic that comes back need not have been deactivated."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of running settings over a log."""

    policy: ActivationPolicy
    """The settings."""
    reads: int
    """Readings of topics."""
    wanted: int
    """Topics that were quoted in the log, counted for each turn."""
    missed: int
    """Those of them that would have been dormant, or that only a search would have activated."""
    flaps: int
    """Topics activated within `FLAP` turns of a deactivation, other than by a split."""
    full: int
    """Turns that ended with as many active topics as there may be."""
    guessed: int
    """Readings whose score is not in the log."""
    likeness: float
    """The likeness of the active topics to those of the log, 0 to 1: mean over the turns of what
    both have over what either has."""


def replay(log: Sequence[Observation], policy: ActivationPolicy) -> Replay:
    """Run the activation over a log of consecutive turns, with the settings to try."""
    run = _Run(policy)
    for seen in log:
        run.take(seen)
    return Replay(
        policy=policy,
        reads=run.reads,
        wanted=run.wanted,
        missed=run.missed,
        flaps=run.flaps,
        full=run.full,
        guessed=run.guessed,
        likeness=mean(run.likenesses or [1.0]),
    )


class _Run:
    """A running replay. A turn goes as in the graph: split, retrieval, search, finalizing."""

    def __init__(self, policy: ActivationPolicy) -> None:
        self.policy = policy
        self.reads = self.wanted = self.missed = self.flaps = self.full = self.guessed = 0
        self.likenesses: list[float] = []
        self._active: Mapping[str, tuple[float, ...]] = {}
        self._deactivated: dict[str, int] = {}

    def take(self, seen: Observation) -> None:
        """Replay one turn."""
        left = {t: s for t, s in self._active.items() if t not in seen.ended}
        fresh = dict.fromkeys(seen.fresh, INITIAL_RELEVANCE)
        self._enter(seen.turn, activate_candidates(left, fresh, self.policy).active, flapping=False)
        self._enter(seen.turn, activate_candidates(self._active, seen.ratings, self.policy).active)
        missed = seen.wanted - self._active.keys()
        # A topic that had to be asked for has to be asked for here too.
        activated = {topic: (seen.scores[topic],) for topic in sorted(missed & seen.sought)}
        self._enter(seen.turn, {**self._active, **activated})
        unknown = self._active.keys() - seen.scores.keys() - seen.known if seen.scores else ()
        scores = {**seen.scores, **dict.fromkeys(unknown, seen.background)}
        if seen.scores:
            self.wanted += len(seen.wanted)
            self.missed += len(missed)
            self.reads += len(self._active)
            self.guessed += len(unknown)
        self._enter(seen.turn, update_activation(self._active, scores, self.policy).active)
        if seen.scores:
            self.full += len(self._active) >= self.policy.ceiling
            either = self._active.keys() | seen.active
            both = self._active.keys() & seen.active
            self.likenesses.append(len(both) / len(either) if either else 1.0)

    def _enter(
        self, turn: int, active: Mapping[str, tuple[float, ...]], *, flapping: bool = True
    ) -> None:
        """Enter new active topics; count those that came back too soon, but for a split's."""
        for topic in active.keys() - self._active.keys():
            dormant = self._deactivated.pop(topic, None)
            self.flaps += flapping and dormant is not None and turn - dormant <= FLAP
        self._deactivated |= dict.fromkeys(self._active.keys() - active.keys(), turn)
        self._active = active


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
    """Replay a log of consecutive turns with other settings; suggest some if it speaks for them.

    Those in force are what it was made with.
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
        return FilledText(
            "too little was read and quoted so far: about {turns} more turns are needed", turns=more
        )
    if base.likeness < _LIKE:
        return FilledText(
            "replayed with the settings in force, the active topics are those of the log by "
            "{likeness:.0%} only: it was made with other settings",
            likeness=base.likeness,
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
