"""Which messages are worth quoting for a message, and in which order: one list of steps.

`RECALL` is the list. Each step takes what is asked and the scores so far [n], and returns new
ones; the numbers that the steps share are in `RankWeights`. Another order is another value:
`replace(RECALL, steps=...)`. `docs/research/recall.md` says what each step brings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from topicloom.prompts.loader import load_patterns
from topicloom.search.words import words_of

Floats = NDArray[np.float64]
_WHOSE, _ = load_patterns("cues/whose_words")
_YOU_SAID, _I_SAID = (re.compile(_WHOSE[name], re.IGNORECASE) for name in ("yours", "mine"))
_ASSISTANT = frozenset({"", "assistant", "ai", "bot"})
"""Names that no person has."""


@dataclass(frozen=True, slots=True)
class RankWeights:
    """The numbers of the steps, in their order."""

    own: float = 1.0
    """Weight of a message's own score."""
    near: float = 2.0
    """Weight of the mean score of its neighbours."""
    reach: float = 80.0
    """Tokens after which a neighbour counts a third."""
    pull: float = 30.0
    """Tokens of a message with no score that stands beside each one: at the ends of a conversation
    there is less around, which is no merit."""
    user: float = 2.0
    """Bonus for the user's own words in talk with an assistant, and for a question about them."""
    fits: float = 0.5
    """Spreads over the mean from which a message rises with its topic. Others do not, or a large
    topic would fill the budget, whatever its messages say."""
    frame: float = 4.0
    """Tokens that a quote costs beside its text."""


TALK = RankWeights()
"""Talk of two: an answer stands next to what it answers."""
MEETING = RankWeights(own=0.1, reach=300.0)
"""Talk of more: half sentences, of which none says much by itself; a subject goes on for
minutes."""
_PARTY = 0.05
"""Share of the messages from which someone has a part in the talk."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a conversation, in its order, as columns [n]."""

    costs: Floats
    """Tokens of each."""
    from_user: Floats
    """1 for the user's own, else 0."""
    names: Sequence[str]
    """Names of the speakers; "" stands for all who have none."""
    speaker: NDArray[np.integer]
    """Place of each one's speaker among the names."""
    topics: NDArray[np.integer]
    """The number of each one's topic."""
    opens: NDArray[np.bool_]
    """True for the user's messages with which a stretch of their topic began."""

    @property
    def weights(self) -> RankWeights:
        """Those of a meeting if more than two people have a part in it."""
        shares = np.bincount(self.speaker, minlength=len(self.names)) / len(self.speaker)
        parties = [n for n, share in zip(self.names, shares, strict=True) if n and share >= _PARTY]
        return MEETING if len(parties) > 2 else TALK

    @property
    def with_assistant(self) -> bool:
        """True if one person talks to an assistant."""
        others = np.unique(self.speaker[self.from_user == 0])
        names = {self.names[place].casefold() for place in others.tolist()}
        return bool(names) and names <= _ASSISTANT

    @property
    def turns(self) -> float:
        """The share of the messages that another sends than the one before, 0 to 1.

        Where people take turns, an answer stands next to what it answers. Who writes in bursts, or
        alone, jumps from one thing to the next.
        """
        same = (np.diff(self.speaker) == 0) & (np.diff(self.from_user) == 0)
        return 1 - float(same.mean()) if len(same) else 1.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked, and what is known of every message about it."""

    text: str
    messages: Messages
    cosine: Floats
    """Similarity of each message's vector to that of the text [n]."""
    lexical: Floats
    """BM25 of each message [n]."""
    cover: float
    """Share of the weight of the text's words that the best message holds, 0 to 1."""
    in_turn: Floats = field(default_factory=lambda: np.zeros(()))
    """Probability that the turn is in the topic of each message [n], or one for all []."""
    days: NDArray[np.bool_] | None = None
    """True for the messages of the days that are asked for [n]."""


RankStep = Callable[[Asked, RankWeights, Floats], Floats]


def compare_meaning(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """Encode: how near each message is in meaning."""
    return scores + standardize(asked.cosine)


def compare_words(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """BM25, trusted as far as it found the words of what is asked.

    The words of a question stand in its answer. Those of a remark hardly stand in what it is
    related to, and BM25 is noise.
    """
    return np.asarray(scores + math.sqrt(asked.cover) * standardize(asked.lexical))


def discount_length(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """What a message's length alone would give it is taken off."""
    length = np.log(asked.messages.costs + weights.frame)
    centred = length - length.mean()
    # No `@`: for so little each of BLAS's threads waits longer for the others than it works.
    # The 1 in the divisor is for short sessions: of four messages one that says it is no rule.
    slope = float((scores * centred).sum()) / (1 + float((centred * centred).sum()))
    return np.asarray(scores - slope * centred)


def find_speaker(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """Who is named has the word."""
    words = set(words_of(asked.text))
    names = [_words_of_name(name) for name in asked.messages.names]
    shares = np.array([sum(w in words for w in n) / max(1, len(n)) for n in names])
    named = shares[asked.messages.speaker]
    return np.asarray(scores + named - named.mean())


def spread_to_neighbours(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """What stands next to what was found, the more the more people take turns."""
    costs = asked.messages.costs
    # A long message says more surely than a short one what is talked about.
    weight = np.sqrt(costs / weights.pull)
    position = np.cumsum(costs) - costs / 2
    around = neighbours(scores * weight, position, weights.reach)
    mean = around / (1 + neighbours(weight, position, weights.reach))
    return np.asarray(weights.own * scores + weights.near * asked.messages.turns * mean)


def prefer_user(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """The user's own words: most of what talk with an assistant is asked for is there."""
    mine = bool(_I_SAID.search(asked.text)) and not _YOU_SAID.search(asked.text)
    times = int(mine) + int(asked.messages.with_assistant)
    return scores + weights.user * times * asked.messages.from_user


def prefer_topics(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """The messages of the topics that the turn is in, and of these where a stretch began.

    They rise by a spread if they fit by themselves, and by one more if the user began a stretch of
    the topic with them. In talk with an assistant alone: people among themselves seldom go back to
    where they were.
    """
    messages = asked.messages
    if not messages.with_assistant:
        return scores
    fits = standardize(scores) >= weights.fits
    rise = float(scores.std()) * (1 + messages.opens) * fits
    return np.asarray(scores + rise * asked.in_turn)


def charge_price(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """Under a budget a long message has to earn its place."""
    return np.asarray(scores - np.log(asked.messages.costs + weights.frame))


def put_days_first(asked: Asked, weights: RankWeights, scores: Floats) -> Floats:
    """Time: the days that are asked for, of which every topic has its say.

    First the best message of each topic, then the second of each.
    """
    if asked.days is None:
        return scores
    place = np.flatnonzero(asked.days)
    place = place[np.lexsort((-scores[place], asked.messages.topics[place]))]
    first = np.r_[True, np.diff(asked.messages.topics[place]) != 0][: len(place)]
    began = np.maximum.accumulate(np.where(first, np.arange(len(place)), 0))
    turn = np.arange(len(place)) - began
    span = float(np.ptp(scores)) + 1
    raised = scores.copy()
    raised[place] += span * (len(place) - turn)
    return raised


@dataclass(frozen=True, slots=True)
class Recipe:
    """A ranking: its steps, in the order in which they run, and its numbers."""

    steps: tuple[RankStep, ...]
    weights: RankWeights | None = None
    """None for those that the messages call for: talk of two, or a meeting."""

    def rank(self, asked: Asked) -> Floats:
        """Scores of all messages [n], the best to quote highest; no fixed scale."""
        weights = self.weights or asked.messages.weights
        scores: Floats = np.zeros(len(asked.cosine))
        for step in self.steps:
            scores = step(asked, weights, scores)
        return scores


RECALL = Recipe(
    (
        compare_meaning,
        compare_words,
        discount_length,
        find_speaker,
        spread_to_neighbours,
        prefer_user,
        prefer_topics,
        charge_price,
        put_days_first,
    )
)
"""What is quoted under a budget."""
LOOK_UP = replace(
    RECALL, steps=tuple(step for step in RECALL.steps if step not in (charge_price, prefer_topics))
)
"""What is listed where nothing is quoted: length is no fault there, and no turn is going on."""
FLAT = Recipe((compare_meaning, compare_words))
"""A message by its own words alone."""


@lru_cache(4096)
def _words_of_name(name: str) -> tuple[str, ...]:
    return tuple(words_of(name))


def standardize(values: Floats) -> Floats:
    """Values in spreads from their mean; zeros where all are the same."""
    spread = float(values.std())
    return np.asarray((values - values.mean()) / (spread if spread > 1e-9 else 1.0))


def neighbours(values: Floats, position: Floats, reach: float) -> Floats:
    """Sum [n] over all others, each weighted by `exp(-distance / reach)`, in n log n.

    Ascending positions [n] and the reach are in tokens.
    """
    if len(values) < 2:
        return np.zeros_like(values)
    decay = np.exp(-np.diff(position) / reach)
    left = _run(np.r_[0, decay], values) - values
    right = _run(np.r_[0, decay[::-1]], values[::-1])[::-1] - values
    return left + right


def _run(decay: Floats, values: Floats) -> Floats:
    """`u[i] = decay[i] * u[i - 1] + values[i]`, by doubling."""
    decay, total, step = decay.copy(), values.copy(), 1
    while step < len(total):
        total[step:] += decay[step:] * total[:-step]
        decay[step:] *= decay[:-step]
        step *= 2
        if decay[step:].max(initial=0) < 1e-12:
            break
    return total
