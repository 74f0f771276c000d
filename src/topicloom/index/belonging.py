"""How likely runs of rounds belong together: the one model of what a topic is.

A run is a stretch of rounds in which nothing speaks for a new topic. Two runs are compared by

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

from topicloom.index.embedder import Embedder, Vectors, unit_rows
from topicloom.index.words import count_words, words_of
from topicloom.state.grouping import Odds
from topicloom.state.rounds import Round
from topicloom.state.stored_message import StoredMessage, parse_iso_seconds


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
    """What is added to that while nothing is known of the conversation: less and less."""


WEIGHTS = BelongingWeights()
"""Those that ship."""

_CLIP = (-3.0, 5.0)
"""Spreads from the mean at most."""
_LENGTH = (-2.0, 3.0)
"""Bounds of the logarithm of the words of the shorter run, over that of a plain sentence."""
_SENTENCE = 3.5
"""Logarithm of the words of about two sentences."""
_CONTINUES = 4.0
"""Log odds of the boundary detector at most."""
KNOWN = 1.5
"""Log odds by what the detector saw when a stored message came: it kept no more than yes or no."""
KNOWN_APART = 6.0
"""Log odds by the ruling of an arbiter."""
NEW_HOME, LOOSE_HOME = -1, -2
"""Codes for no topic yet, and for loose ends."""
_REFERENCES = 160
"""Runs at most whose pairs say what is usual in the conversation."""
_FAR = 20
"""Runs between two that lie far apart, or a quarter of all."""
_USUAL = ((0.05, 0.2), (0.2, 0.12))
"""Mean and spread of likeness and of the root of the cosine of words, while little is known."""
_SHRINK = 12.0
"""Runs that the usual values and an empty mean weigh as much as."""
_NEWEST = 24
"""Runs of a topic that others are compared with: the newest ones."""
_VOICES = 3
"""Voices up to which who speaks says nothing about topics."""
_PAUSE, _LONGEST_PAUSE, _TIMES = 1800.0, 21_600.0, 4.0
"""A new sitting begins after so many times the usual pause, within these bounds in seconds."""
_ONE_MATTER, _MANY_MATTERS = 8.0, 14.0
"""Rounds of a usual sitting up to which it is about one matter, and from which on about several."""
_FEW = 2.0
"""Sittings about several matters that are taken for known before any is."""
_CUT = (-2.2, 1.0)
"""Log odds of going on below which a run ends, in sittings of one matter and of several."""


@dataclass(frozen=True, slots=True)
class Said:
    """Messages in the order of the conversation, as columns [n]."""

    number: NDArray[np.int64]
    begins: NDArray[np.bool_]
    """True for the first message of a round."""
    home: NDArray[np.int64]
    """Code of its topic; `NEW_HOME` or `LOOSE_HOME` for none."""
    seconds: NDArray[np.float64]
    """Since the epoch; NaN if unknown."""
    voice: NDArray[np.int64]
    """Code of who says it."""
    continues: NDArray[np.float64]
    """Log odds that the round that it begins goes on with the one before."""
    vectors: Vectors
    """[n, d]."""
    word_at: NDArray[np.int64]
    """Rows of the words below."""
    word: NDArray[np.int64]
    """Codes of words."""
    times: NDArray[np.float64]
    """How often each is said."""

    def __len__(self) -> int:
        return len(self.number)


def join_said(parts: Sequence[Said]) -> Said:
    """Messages of several kinds in one table; their order is that of their numbers."""
    offsets = np.cumsum([0, *map(len, parts)])[:-1]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("number", "begins", "home", "seconds", "voice", "continues", "vectors")
    }
    order = np.argsort(columns["number"], kind="stable")
    at = np.concatenate([p.word_at + o for p, o in zip(parts, offsets, strict=True)])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Said(
        **{name: column[order] for name, column in columns.items()},
        word_at=place[at],
        word=np.concatenate([p.word for p in parts]),
        times=np.concatenate([p.times for p in parts]),
    )


class Codes(dict[str, int]):
    """Codes of names, given as they come."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def read_rounds(
    rounds: Sequence[Round],
    continues: Sequence[float],
    embedder: Embedder,
    words: dict[str, int],
    voices: dict[str, int],
) -> Said:
    """Rounds that are in no topic yet, as columns; the codes of new words and voices are added."""
    messages = [m for b in rounds for m in b.messages]
    begins = np.array([m is b.messages[0] for b in rounds for m in b.messages], dtype=np.bool_)
    odds = np.array([c for b, c in zip(rounds, continues, strict=True) for _ in b.messages])
    counts = [count_words(message.line) for message in messages]
    return Said(
        number=np.array([m.seq for m in messages], dtype=np.int64),
        begins=begins,
        home=np.full(len(messages), NEW_HOME, dtype=np.int64),
        seconds=np.array([read_seconds(m) for m in messages], dtype=np.float64),
        voice=np.array([voices[m.label] for m in messages], dtype=np.int64),
        continues=odds.astype(np.float64),
        vectors=embedder.embed([m.line for m in messages]),
        word_at=np.repeat(np.arange(len(messages)), [len(c) for c in counts]),
        word=np.array([words[w] for c in counts for w in c], dtype=np.int64),
        times=np.array([n for c in counts for n in c.values()], dtype=np.float64),
    )


def read_seconds(message: StoredMessage) -> float:
    """Seconds since the epoch that a message was said at; NaN if it has no time."""
    seconds = parse_iso_seconds(message.time)
    return float("nan") if seconds is None else seconds


def find_sittings(said: Said) -> NDArray[np.bool_]:
    """True for messages that begin a round and a sitting [n]: they come after an unusual pause.

    A clock that goes back as far begins one too: it is another day's, or another device's.
    """
    sits = np.zeros(len(said), dtype=np.bool_)
    if len(said):
        sits[0] = True
        latest = _fill(said.seconds)
        pause = np.diff(latest)
        usual = pause[said.begins[1:] & (pause > 0)]
        limit = _TIMES * float(np.median(usual)) if len(usual) else _PAUSE
        limit = min(max(limit, _PAUSE), _LONGEST_PAUSE)
        told = ~np.isnan(said.seconds[1:])
        sits[1:] = said.begins[1:] & told & (np.abs(pause) > limit)
    return sits


def _fill(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times, each unknown one as the last that is known."""
    known = ~np.isnan(seconds)
    if not known.any():
        return np.zeros(len(seconds))
    last = np.maximum.accumulate(np.where(known, np.arange(len(seconds)), -1))
    last[last < 0] = int(known.argmax())
    return np.asarray(seconds[last])


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a conversation [k], in its order."""

    first: NDArray[np.int64]
    """Number of the first message of each."""
    last: NDArray[np.int64]
    home: NDArray[np.int64]
    """Code of its topic; `NEW_HOME` or `LOOSE_HOME` for none."""
    rounds: NDArray[np.int64]
    """How many rounds it has."""
    vectors: Vectors
    """Mean vectors less what all share, as unit rows [k, d]."""
    length: NDArray[np.float64]
    """How many words it has."""
    follows: NDArray[np.float64]
    """Log odds that it goes on with the run right before it in its sitting; NaN if none is."""
    sits: NDArray[np.bool_]
    """True if a sitting begins with it, right after the run before it."""
    goes_on: NDArray[np.bool_]
    """True if nothing but its topic, or that it has none yet, parts it from the run before it."""
    voices: NDArray[np.float64]
    """How often each person speaks or is named in it [k, p]; no columns where few speak."""
    word_at: NDArray[np.int64]
    word: NDArray[np.int64]
    weight: NDArray[np.float64]
    """Its words: rows of runs, codes, and weights whose squares add up to 1 in each run."""

    def __len__(self) -> int:
        return len(self.first)


def cut_runs(said: Said, words: Mapping[str, int], voices: Mapping[str, int]) -> Runs:
    """Cut a conversation into runs; each lies in one topic, or in none, and in one sitting."""
    sits = find_sittings(said)
    people = len(set(said.voice.tolist()))
    starts, parts = _find_starts(said, sits, people)
    run = np.cumsum(starts) - 1
    count = int(run[-1]) + 1 if len(run) else 0
    begin = np.flatnonzero(starts)
    end = np.append(begin, len(said))[1:] - 1
    sums = np.zeros((count, said.vectors.shape[1]), dtype=np.float64)
    if count:
        np.add.reduceat(said.vectors, begin, axis=0, dtype=np.float64, out=sums)
    near = np.zeros(count, dtype=np.bool_)
    near[1:] = said.number[begin[1:]] == said.number[begin[1:] - 1] + 1
    odds = np.clip(said.continues[begin], -_CONTINUES, _CONTINUES)
    own, code, weight = _weigh_words(said, run, count)
    length = np.bincount(run[said.word_at], said.times.astype(np.float64), minlength=count)
    return Runs(
        first=said.number[begin],
        last=said.number[end],
        home=said.home[begin],
        rounds=np.maximum(1, np.bincount(run, said.begins, minlength=count)).astype(np.int64),
        vectors=_centre(sums),
        length=np.asarray(length, dtype=np.float64),
        follows=np.where(near & ~sits[begin], odds, np.nan),
        sits=near & sits[begin],
        goes_on=~parts[begin],
        voices=_count_voices(said, run, count, words, voices, people),
        word_at=own,
        word=code,
        weight=weight,
    )


def _find_starts(
    said: Said, sits: NDArray[np.bool_], people: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """True for messages that begin a run [n], and for those at which nothing goes on [n].

    A run begins as well where another topic does, though what is said may go on.
    """
    starts = np.zeros(len(said), dtype=np.bool_)
    if not len(said):
        return starts, starts
    usual = (said.begins.sum() + _MANY_MATTERS * _FEW) / (sits.sum() + _FEW)
    share = np.log(usual / _ONE_MATTER)
    share /= np.log(_MANY_MATTERS / _ONE_MATTER)
    below = _CUT[0] + (_CUT[1] - _CUT[0]) * float(np.clip(share, 0, 1))
    # Of several people at once each message may be about something else.
    below = np.inf if people > _VOICES else below
    fresh = said.home[1:] < 0
    apart = np.diff(said.number) != 1
    other = np.diff(said.home) != 0
    breaks = fresh & (said.continues[1:] < below)
    starts[0] = True
    starts[1:] = apart | (said.begins[1:] & (sits[1:] | other | breaks))
    parts = np.ones(len(said), dtype=np.bool_)
    parts[1:] = apart | sits[1:] | (said.continues[1:] < below)
    return starts, parts


def _centre(sums: NDArray[np.float64]) -> Vectors:
    """Unit rows of sums [k, d], less what all have in common, as far as that is known by now."""
    rows = unit_rows(sums.astype(np.float32))
    common = rows.sum(axis=0) / (len(rows) + _SHRINK)
    return unit_rows(rows - common)


def _weigh_words(
    said: Said, run: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The words of runs: rows, codes and weights, by rarity among the runs."""
    size = int(said.word.max(initial=0)) + 1
    keys, place = np.unique(run[said.word_at] * size + said.word, return_inverse=True)
    times = np.bincount(place, said.times, minlength=len(keys))
    own, code = keys // size, keys % size
    rare = np.log((count + 1) / np.maximum(1, np.bincount(code, minlength=size)))
    weight = (1 + np.log(times)) * rare[code] if len(keys) else np.zeros(0)
    norm = np.sqrt(np.bincount(own, weight**2, minlength=count))
    return own, code, weight / np.maximum(norm[own], 1e-9)


def _count_voices(
    said: Said,
    run: NDArray[np.int64],
    count: int,
    words: Mapping[str, int],
    voices: Mapping[str, int],
    people: int,
) -> NDArray[np.float64]:
    """How often each person speaks or is named in each run; no columns where few speak."""
    if people <= _VOICES:
        return np.zeros((count, 0))
    found = np.zeros((count, max(voices.values(), default=0) + 1))
    np.add.at(found, (run[said.begins], said.voice[said.begins]), 1)
    for name, code in voices.items():
        parts = words_of(name)
        if len(parts) != 1 or len(name) < 2 or parts[0] not in words:
            continue
        at = said.word_at[said.word == words[parts[0]]]
        np.add.at(found, (run[at[said.voice[at] != code]], code), 1)
    return found


def rate_pairs(runs: Runs, rows: NDArray[np.intp], weights: BelongingWeights = WEIGHTS) -> Odds:
    """Log odds that some runs [r], by their places, belong together with each run [r, k]."""
    return apply_weights(compare_pairs(runs, rows), weights)


@dataclass(frozen=True, slots=True)
class Pairs:
    """What speaks for pairs of runs, each but the last [r, k]."""

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


def compare_pairs(runs: Runs, rows: NDArray[np.intp]) -> Pairs:
    """Compare some runs [r], by their places, with each run [k]."""
    count = len(runs)
    places = np.arange(count)
    means = _find_usual(runs)
    alike = (runs.vectors[rows] @ runs.vectors.T - means[0][0]) / means[0][1]
    said = (np.sqrt(np.maximum(_word_products(runs, rows), 0)) - means[1][0]) / means[1][1]
    shorter = np.minimum(runs.length[rows][:, None], runs.length[None, :])
    apart = np.abs(rows[:, None] - places[None, :])
    later = np.maximum(rows[:, None], places[None, :])
    next_to, joins = apart == 1, runs.follows[later]
    goes_on = next_to & ~np.isnan(joins)
    return Pairs(
        likeness=np.clip(alike, *_CLIP),
        words=np.clip(said, *_CLIP),
        length=np.clip(np.log(shorter + 1) - _SENTENCE, *_LENGTH),
        distance=np.log(np.maximum(apart, 1)),
        continues=np.where(goes_on, joins, 0.0),
        adjacent=goes_on.astype(np.float64),
        sitting=(next_to & runs.sits[later]).astype(np.float64),
        speakers=_compare_voices(runs, rows),
        beginning=(_SHRINK / (count + _SHRINK)) ** 2,
    )


def _word_products(runs: Runs, rows: NDArray[np.intp]) -> Odds:
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


def _find_usual(runs: Runs) -> list[tuple[float, float]]:
    """Mean and spread of likeness and of words over pairs that lie far apart."""
    count = len(runs)
    some = np.unique(np.linspace(0, count - 1, min(count, _REFERENCES)).astype(np.intp))
    far = np.abs(some[:, None] - some[None, :]) > min(_FAR, count // 4)
    alike = (runs.vectors[some] @ runs.vectors[some].T)[far]
    said = np.sqrt(np.maximum(_word_products(runs, some)[:, some], 0))[far]
    return [
        _shrink(alike, _USUAL[0], count),
        _shrink(said, _USUAL[1], count),
    ]


def _shrink(values: Odds, usual: tuple[float, float], runs: int) -> tuple[float, float]:
    """Mean and spread of values, drawn to the usual ones while they are of few runs."""
    share = runs / (runs + _SHRINK) if values.size else 0.0
    mean, spread = (float(values.mean()), float(values.std())) if values.size else usual
    return (
        share * mean + (1 - share) * usual[0],
        max(share * spread + (1 - share) * usual[1], 1e-3),
    )


def _compare_voices(runs: Runs, rows: NDArray[np.intp]) -> Odds:
    """How much more two runs share their people than two at random would, as a logarithm."""
    if runs.voices.shape[1] == 0:
        return np.zeros((len(rows), len(runs)))
    usual = (runs.voices.sum(axis=0) + 0.5) / (runs.voices.sum() + 0.5 * runs.voices.shape[1])
    share = runs.voices / np.maximum(runs.voices.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.log1p((share[rows] / usual) @ share.T))


@dataclass(frozen=True, slots=True)
class Ties:
    """How likely the runs of some rounds belong together, and to topics."""

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

    def of_rounds(self, places: Sequence[int]) -> Ties:
        """The ties of some of the rounds."""
        chosen = list(places)
        return replace(self, run=self.run[chosen], goes_on=self.goes_on and chosen[:1] == [0])

    def best(self) -> dict[str, float]:
        """The highest log odds of each topic."""
        used = np.unique(self.run)
        return {t: float(odds[used].max()) for t, odds in self.topics.items() if len(used)}

    def likely(self) -> dict[str, float]:
        """Probability that the last run belongs to each topic; what is left to 1 is for none."""
        if not len(self.run):
            return {}
        odds = {t: float(found[self.run[-1]]) for t, found in self.topics.items()}
        worths = {t: float(np.exp(min(o, 30.0))) for t, o in odds.items()}
        whole = 1 + sum(worths.values())
        return {t: worth / whole for t, worth in worths.items()}


def tie_rounds(
    rounds: Sequence[Round],
    continues: Sequence[float],
    embedder: Embedder,
    weights: BelongingWeights = WEIGHTS,
) -> Ties:
    """The ties of rounds by themselves; `continues` are log odds, for each, of going on."""
    if not rounds:
        return Ties(np.zeros(0, dtype=np.intp), np.zeros((0, 0)))
    words, voices = Codes(), Codes()
    said = read_rounds(rounds, continues, embedder, words, voices)
    return find_ties(cut_runs(said, words, voices), rounds, {}, weights)


def find_ties(
    runs: Runs,
    rounds: Sequence[Round],
    topics: Mapping[int, str],
    weights: BelongingWeights = WEIGHTS,
) -> Ties:
    """The ties of rounds in a conversation's runs to one another and to topics, by their codes."""
    fresh = np.flatnonzero(runs.home == NEW_HOME)
    held = np.searchsorted(runs.first[fresh], [b.first for b in rounds], side="right") - 1
    odds = rate_pairs(runs, fresh, weights)
    found: dict[str, Odds] = {}
    sizes: dict[str, int] = {}
    for code, topic in topics.items():
        own = np.flatnonzero(runs.home == code)[-_NEWEST:]
        if len(own):
            found[topic], sizes[topic] = odds[:, own].mean(axis=1), len(own)
    goes_on = bool(runs.goes_on[fresh[held[0]]])
    return Ties(held.astype(np.intp), odds[:, fresh], found, sizes, goes_on)


@dataclass(frozen=True, slots=True)
class FiledRuns:
    """Runs that are in topics, and how likely they belong together."""

    homes: tuple[str, ...]
    """The topic of each [r]; "" for loose ends."""
    first: tuple[int, ...]
    """Number of the first message of each."""
    last: tuple[int, ...]
    rounds: tuple[int, ...]
    odds: Odds
    """Log odds of pairs [r, r]."""


def file_runs(
    runs: Runs, topics: Mapping[int, str], weights: BelongingWeights = WEIGHTS
) -> FiledRuns:
    """The runs of some topics, by their codes, and those that are loose."""
    kept = np.flatnonzero(np.isin(runs.home, [*topics, LOOSE_HOME]))
    odds = rate_pairs(runs, kept, weights)[:, kept]
    return FiledRuns(
        homes=tuple(topics.get(code, "") for code in runs.home[kept].tolist()),
        first=tuple(runs.first[kept].tolist()),
        last=tuple(runs.last[kept].tolist()),
        rounds=tuple(runs.rounds[kept].tolist()),
        odds=odds,
    )
