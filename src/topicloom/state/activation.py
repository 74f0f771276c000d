"""Activation of topics: moving averages, ranks, thresholds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field, model_validator

from topicloom.errors import ConfigurationError

INITIAL_RELEVANCE = 0.6
"""Relevance that a topic starts with when messages have just moved to it."""


class ActivationPolicy(BaseModel, frozen=True, extra="forbid"):
    """Thresholds and counts of activation; the defaults are the design's values."""

    window: int = Field(default=5, ge=1)
    """Rounds over which a topic's relevance is averaged."""
    base: float = 0.2
    """Relevance that the first topic needs to become active."""
    step: float = 0.03
    """How much more each further topic needs."""
    sleep_share: float = 0.5
    """An active topic becomes dormant below this share of its threshold."""
    floor: int = Field(default=3, ge=0)
    """At least so many topics stay active."""
    usual: int = Field(default=10, ge=1)
    """Active topics that a turn aims at when topics are activated by rank."""
    ceiling: int = Field(default=20, ge=1)
    """At most so many topics are active."""

    @model_validator(mode="after")
    def _check_order(self) -> ActivationPolicy:
        if not self.floor <= self.usual <= self.ceiling:
            raise ConfigurationError(
                "activation wants floor <= usual <= ceiling, not {floor} <= {usual} <= {ceiling}",
                floor=self.floor,
                usual=self.usual,
                ceiling=self.ceiling,
            )
        return self

    def threshold(self, admitted: int) -> float:
        """Relevance that the next topic needs when `admitted` are in already."""
        return self.base + self.step * admitted

    def scale_thresholds(self, share: float) -> ActivationPolicy:
        """The policy with thresholds at a share of what they are."""
        return self.model_copy(update={"base": self.base * share, "step": self.step * share})


@dataclass(frozen=True, slots=True)
class ActivationChange:
    """The effect of a round on the active set."""

    active: dict[str, tuple[float, ...]]
    """The new active topics with their scores, newest last."""
    activated: tuple[str, ...]
    """Topics that were not active before, best first."""
    deactivated: tuple[str, ...]
    """Topics that are active no more."""


def average_scores(scores: Sequence[float]) -> float:
    """Moving average weighted towards the newest: weights 1, 2, ... n, oldest first."""
    if not scores:
        return 0.0
    weights = range(1, len(scores) + 1)
    return sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights)


def activate_candidates(
    active: Mapping[str, Sequence[float]],
    candidates: Mapping[str, float],
    policy: ActivationPolicy,
    pinned: Collection[str] = (),
) -> ActivationChange:
    """Activate candidates by their place in the ranking of all topics.

    The topic of rank `n` (by its relevance, 0 to 1; an active one by its average, should that be
    more) is activated if it reaches `threshold(n)` and stands among the first `usual`. Should that
    make more than `ceiling`, the last active ones of the ranking are deactivated at once. An active
    candidate is one that the conversation comes back to: its average does not deactivate it.
    `pinned` ones come first of all.
    """
    relevance = dict(candidates)
    relevance |= {t: max(average_scores(s), candidates.get(t, 0.0)) for t, s in active.items()}
    relevance |= dict.fromkeys(active.keys() & set(pinned), 1.0)
    ranked = sorted(relevance, key=lambda t: (-relevance[t], t))
    activated = [
        topic
        for rank, topic in enumerate(ranked[: policy.usual])
        if topic not in active and relevance[topic] >= policy.threshold(rank)
    ]
    stay = [topic for topic in ranked if topic in active][: policy.ceiling - len(activated)]
    after = {t: tuple(active[t]) for t in active if t in stay}
    after |= {topic: (relevance[topic],) for topic in activated}
    return ActivationChange(after, tuple(activated), tuple(t for t in active if t not in after))


def plan_calls(
    topics: Sequence[str], tokens: Mapping[str, int], room: int
) -> tuple[tuple[str, ...], ...]:
    """The calls of readers by which some topics are read: a large one alone, small ones together.

    Args:
        topics: Ids, each once.
        tokens: The size of each.
        room: Tokens of topics that fit one call.
    """
    alone = [(t,) for t in topics if tokens[t] > SMALL]
    calls, left = list[list[str]](), 0
    for topic in (t for t in topics if tokens[t] <= SMALL):
        if not calls or tokens[topic] > left:
            calls, left = [*calls, []], room
        calls[-1].append(topic)
        left -= tokens[topic]
    return (*alone, *map(tuple, calls))


def find_ambiguous(relevance: Mapping[str, float], policy: ActivationPolicy) -> tuple[str, ...]:
    """Topics to ask the user about: several alike, none of them clear; best first."""
    best = sorted(relevance, key=lambda t: -relevance[t])
    if not best or relevance[best[0]] >= CLEAR:
        return ()
    alike = [t for t in best if relevance[t] >= max(policy.base, relevance[best[0]] - _ALIKE)]
    return tuple(alike[:4]) if len(alike) > 1 else ()


SMALL = 400
"""Tokens of a topic up to which it is read together with others: a call of its own costs more."""
CLEAR = 0.7
"""Relevance from which a topic is meant for sure (the design's value)."""
_ALIKE = 0.1
"""Difference of relevance within which topics can't be told apart."""


def transfer_activation(
    active: Mapping[str, Sequence[float]], topic: str, heirs: Sequence[str]
) -> dict[str, tuple[float, ...]]:
    """The active topics when others take the place and the scores of one of them."""
    after: dict[str, tuple[float, ...]] = {}
    for held, scores in active.items():
        places = [i for i in heirs if i not in active] if held == topic else [held]
        after |= dict.fromkeys(places, tuple(scores))
    return after


def update_activation(
    active: Mapping[str, Sequence[float]],
    scores: Mapping[str, float],
    policy: ActivationPolicy,
    pinned: Collection[str] = (),
) -> ActivationChange:
    """Fold a round's relevance into the averages and deactivate the weakest topics.

    A topic whose reader gave no score this round keeps its average. Down the ranking, the topic of
    rank `n` is deactivated below `sleep_share x threshold(n)`; the first `floor` never are.
    `pinned` ones come first, and stay.
    """
    kept = {
        topic: (*old, scores[topic])[-policy.window :] if topic in scores else tuple(old)
        for topic, old in active.items()
    }
    ranked = sorted(kept, key=lambda t: (t not in pinned, -average_scores(kept[t]), t))
    stay = [
        topic
        for rank, topic in enumerate(ranked[: policy.ceiling])
        if rank < policy.floor
        or topic in pinned
        or average_scores(kept[topic]) >= policy.sleep_share * policy.threshold(rank)
    ]
    deactivated = tuple(topic for topic in ranked if topic not in stay)
    return ActivationChange({topic: kept[topic] for topic in stay}, (), deactivated)
