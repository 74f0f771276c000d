"""The one model of what a topic is: how likely runs of rounds belong together.

`topics/runs.py` cuts the conversation into runs. Two runs are compared by

- likeness: the cosine of their mean vectors, less what the whole conversation shares;
- words: the cosine of their words, the rarer the more;
- distance: how many runs lie between them, as a logarithm;
- what the boundary detector says, where one follows right on the other in one sitting;
- a sitting that begins between two neighbours;
- speakers: who speaks, and whom a message names, where more than three people do.

Likeness and words are measured in spreads from their mean over pairs of this conversation that lie
far apart. So they mean the same with any encoder, and in talk of any granularity. A logistic model
makes log odds of it. A topic is as close as the mean over its runs. See
`docs/research/boundaries.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Embedder
from topicloom.search.message_columns import LOOSE_TOPIC, NO_TOPIC, Codes, read_rounds
from topicloom.state.grouping import Odds
from topicloom.state.rounds import Round
from topicloom.topics.runs import SHRINK, Runs, cut_runs


@dataclass(frozen=True, slots=True)
class BelongingWeights:
    """The parameters of the model; `lab/scripts/belonging.py` fits and prints them."""

    likeness: float = 0.676
    words: float = 0.27
    likeness_by_length: float = 0.075
    """A long text says more reliably what it is about: weight per unit of `_Pairs.length`."""
    words_by_length: float = 0.131
    distance: float = -0.66
    continues: float = 0.313
    """Weight of the boundary detector's log odds between neighbours in one sitting."""
    adjacent: float = 0.275
    sitting: float = -1.475
    """Of neighbours between which a sitting begins."""
    speakers: float = 0.913
    level: float = 0.286
    """Log odds of a pair of which all else is 0."""
    beginning: float = -3.0
    """The number that is added while little is known of the conversation; it fades."""


WEIGHTS = BelongingWeights()
"""Those that ship."""

_CLIP = (-3.0, 5.0)
"""Spreads from the mean at most."""
_LENGTH = (-2.0, 3.0)
"""Bounds of the logarithm of the words of the shorter run, over that of a plain sentence."""
_SENTENCE = 3.5
"""Logarithm of the words of about two sentences."""
_REFERENCES = 160
"""Runs at most whose pairs say what is usual in the conversation."""
_FAR = 20
"""Runs between two that lie far apart, or a quarter of all."""
_USUAL = ((0.05, 0.2), (0.2, 0.12))
"""Mean and spread of likeness and of the root of the cosine of words, while little is known."""
_AT_ONCE = 256
"""Runs that are compared with all others at a time: what speaks for a pair is many numbers."""
_NEWEST = 24
"""Runs of a topic that others are compared with: the newest ones."""


def rate_pairs(runs: Runs, rows: NDArray[np.intp]) -> Odds:
    """Log odds that some runs [r], by their places, belong together with each run [r, k]."""
    odds, usual = np.empty((len(rows), len(runs))), _find_usual(runs)
    for begin in range(0, len(rows), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        odds[part] = apply_weights(compare_pairs(runs, rows[part], usual), WEIGHTS)
    return odds


Usual = list[tuple[float, float]]
"""Mean and spread of likeness, and of words, in a conversation."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Features of pairs of runs, each but the last [r, k]."""

    likeness: Odds
    words: Odds
    length: Odds
    distance: Odds
    continues: Odds
    adjacent: Odds
    sitting: Odds
    speakers: Odds
    beginning: float
    """1 for a conversation of which nothing is known, towards 0 the more runs it has."""


def apply_weights(pairs: Pairs, weights: BelongingWeights) -> Odds:
    """Log odds of pairs."""
    w = weights
    return np.asarray(
        pairs.likeness * (w.likeness + w.likeness_by_length * pairs.length)
        + pairs.words * (w.words + w.words_by_length * pairs.length)
        + w.distance * pairs.distance
        + w.continues * pairs.continues
        + w.adjacent * pairs.adjacent
        + w.sitting * pairs.sitting
        + w.speakers * pairs.speakers
        + w.level
        + w.beginning * pairs.beginning
    )


def compare_pairs(runs: Runs, rows: NDArray[np.intp], usual: Usual | None = None) -> Pairs:
    """Compare some runs [r], by their places, with each run [k]; `usual` as `_find_usual` says."""
    count = len(runs)
    places = np.arange(count)
    means = usual or _find_usual(runs)
    alike = (runs.vectors[rows] @ runs.vectors.T - means[0][0]) / means[0][1]
    worded = (np.sqrt(np.maximum(_multiply_words(runs, rows), 0)) - means[1][0]) / means[1][1]
    shorter = np.minimum(runs.length[rows][:, None], runs.length[None, :])
    apart = np.abs(rows[:, None] - places[None, :])
    later = np.maximum(rows[:, None], places[None, :])
    next_to, joins = apart == 1, runs.follows[later]
    goes_on = next_to & ~np.isnan(joins)
    return Pairs(
        likeness=np.clip(alike, *_CLIP),
        words=np.clip(worded, *_CLIP),
        length=np.clip(np.log(shorter + 1) - _SENTENCE, *_LENGTH),
        distance=np.log(np.maximum(apart, 1)),
        continues=np.where(goes_on, joins, 0.0),
        adjacent=goes_on.astype(np.float64),
        sitting=(next_to & runs.sits[later]).astype(np.float64),
        speakers=_compare_voices(runs, rows),
        beginning=(SHRINK / (count + SHRINK)) ** 2,
    )


def _multiply_words(runs: Runs, rows: NDArray[np.intp]) -> Odds:
    """Cosines of the words of some runs [r] and of each run [r, k].

    Each run is looked up word by word: most words are in few runs.
    """
    found = np.zeros((len(rows), len(runs)))
    order = np.argsort(runs.word, kind="stable")
    holder, weight = runs.word_at[order], runs.weight[order]
    ends = np.searchsorted(runs.word[order], np.arange(int(runs.word.max(initial=0)) + 2))
    begin = np.searchsorted(runs.word_at, np.arange(len(runs) + 1))
    for row, place in enumerate(rows.tolist()):
        own = slice(begin[place], begin[place + 1])
        starts = ends[runs.word[own]]
        held = ends[runs.word[own] + 1] - starts
        # The places of all holders of its first word, then of its second.
        at = np.arange(held.sum()) + np.repeat(starts - np.cumsum(held) + held, held)
        shared = weight[at] * np.repeat(runs.weight[own], held)
        found[row] = np.bincount(holder[at], shared, minlength=len(runs))
    return found


def _find_usual(runs: Runs) -> Usual:
    """Mean and spread of likeness and of words over pairs that lie far apart."""
    count = len(runs)
    some = np.unique(np.linspace(0, count - 1, min(count, _REFERENCES)).astype(np.intp))
    far = np.abs(some[:, None] - some[None, :]) > min(_FAR, count // 4)
    alike = (runs.vectors[some] @ runs.vectors[some].T)[far]
    worded = np.sqrt(np.maximum(_multiply_words(runs, some)[:, some], 0))[far]
    return [_shrink(alike, _USUAL[0], count), _shrink(worded, _USUAL[1], count)]


def _shrink(values: Odds, usual: tuple[float, float], runs: int) -> tuple[float, float]:
    """Mean and spread of values, drawn to the usual ones while they are of few runs."""
    share = runs / (runs + SHRINK) if values.size else 0.0
    mean, spread = (float(values.mean()), float(values.std())) if values.size else usual
    return (
        share * mean + (1 - share) * usual[0],
        max(share * spread + (1 - share) * usual[1], 1e-3),
    )


def _compare_voices(runs: Runs, rows: NDArray[np.intp]) -> Odds:
    """The logarithm of how much more two runs share people than two at random would."""
    if runs.voices.shape[1] == 0:
        return np.zeros((len(rows), len(runs)))
    usual = (runs.voices.sum(axis=0) + 0.5) / (runs.voices.sum() + 0.5 * runs.voices.shape[1])
    share = runs.voices / np.maximum(runs.voices.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.log1p((share[rows] / usual) @ share.T))


@dataclass(frozen=True, slots=True)
class Affinities:
    """Log odds that the runs of some rounds belong together, and to topics."""

    run: NDArray[np.intp]
    """The run that each round is in [rounds], a row below."""
    among: Odds
    """Log odds of runs [r, r]."""
    topics: Mapping[str, Odds] = field(default_factory=dict)
    """Log odds that each run belongs to a topic, by its id [r]: the mean over the topic's runs."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Runs of each topic that they are the mean of."""
    goes_on: bool = False
    """True if nothing parts the first round from the one before it."""

    def of_rounds(self, places: Sequence[int]) -> Affinities:
        chosen = list(places)
        return replace(self, run=self.run[chosen], goes_on=self.goes_on and chosen[:1] == [0])

    def best(self) -> dict[str, float]:
        """The highest log odds of each topic."""
        used = np.unique(self.run)
        return {t: float(odds[used].max()) for t, odds in self.topics.items() if len(used)}


def rate_rounds(
    rounds: Sequence[Round], continues: Sequence[float], embedder: Embedder
) -> Affinities:
    """The affinities of rounds by themselves; `continues` are log odds, for each, of going on."""
    if not rounds:
        return Affinities(np.zeros(0, dtype=np.intp), np.zeros((0, 0)))
    words, voices = Codes(), Codes()
    columns = read_rounds(rounds, continues, embedder, words, voices)
    return find_affinities(cut_runs(columns, words, voices), rounds, {})


def find_affinities(runs: Runs, rounds: Sequence[Round], topics: Mapping[int, str]) -> Affinities:
    """The affinities of rounds in a conversation's runs to one another and to topics, by code."""
    fresh = np.flatnonzero(runs.topic == NO_TOPIC)
    held = np.searchsorted(runs.first[fresh], [b.first for b in rounds], side="right") - 1
    odds = rate_pairs(runs, fresh)
    found: dict[str, Odds] = {}
    sizes: dict[str, int] = {}
    for code, topic in topics.items():
        own = np.flatnonzero(runs.topic == code)[-_NEWEST:]
        if len(own):
            found[topic], sizes[topic] = odds[:, own].mean(axis=1), len(own)
    goes_on = bool(runs.goes_on[fresh[held[0]]])
    return Affinities(held.astype(np.intp), odds[:, fresh], found, sizes, goes_on)


@dataclass(frozen=True, slots=True)
class FiledRuns:
    """Runs that are in topics, and how likely they belong together."""

    topics: tuple[str, ...]
    """The topic of each [r]; "" for loose ends."""
    first: tuple[int, ...]
    """Number of the first message of each."""
    last: tuple[int, ...]
    rounds: tuple[int, ...]
    odds: Odds
    """Log odds of pairs [r, r]."""


def file_runs(runs: Runs, topics: Mapping[int, str]) -> FiledRuns:
    """The runs of some topics, by their codes, and those that are loose."""
    kept = np.flatnonzero(np.isin(runs.topic, [*topics, LOOSE_TOPIC]))
    odds = rate_pairs(runs, kept)[:, kept]
    return FiledRuns(
        topics=tuple(topics.get(code, "") for code in runs.topic[kept].tolist()),
        first=tuple(runs.first[kept].tolist()),
        last=tuple(runs.last[kept].tolist()),
        rounds=tuple(runs.rounds[kept].tolist()),
        odds=odds,
    )
