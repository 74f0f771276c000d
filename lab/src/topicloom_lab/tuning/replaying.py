"""Replays other settings: the activation of `state/activation.py`, run over a log.

A log holds the score of every topic that was read, so settings under which fewer topics are active
are replayed on scores that were measured. What a dormant topic would have scored is not
known: where other settings keep a topic active for longer, it is taken to score what topics did
that were read in the same turn and not quoted, and such scores are counted as guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from topicloom.state.activation import (
    INITIAL_RELEVANCE,
    ActivationPolicy,
    activate_candidates,
    update_activation,
)
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
    """Run the activation over a log.

    Args:
        log: Consecutive turns.
        policy: The settings to try.
    """
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
