"""The worth of a message for a query, by words, meaning, surroundings and cost.

Found by comparing evidence recall under a token budget on four kinds of conversations (two
people, an assistant, meetings, interleaved tasks). What else was tried is in
`docs/research/recall.md`.
"""

from __future__ import annotations

import calendar
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import count_budget_tokens
from topicloom.prompts.loader import load_patterns
from topicloom.search.encoders import script_shares
from topicloom.search.words import words_of

_USUAL, _PULL = 30.0, 1.0
"""Tokens of a usual message, and the pull towards "nothing near by" in usual messages."""
_FRAME = 4.0
"""Tokens that quoting costs in addition to the text."""
_SELF, _DATE = 1.5, 1.5
"""Bonus for the user's own words when the query is about them, and for each named date word."""
_PARTY = 0.05
"""Share of the messages from which someone has a part in a conversation."""
_WORDS = 0.5
"""Weight of BM25, relative to the cosine, in flat search."""
_FIRST, _ECHO = 10, 0.2
"""Messages that the second look starts from, and the weight of their words, the query's being 1."""
_COVERED = 0.8
"""Square of the share of a Chinese question's words from which BM25 counts in full."""
_LEVEL, _FEW = 0.5, 10
"""Share of what its language gives a cosine that is taken off, and messages that say little of it.
At 1, English finds more Chinese, and either finds less in its own language."""
_FLOOR, _SAFE = 0.2, 0.5
"""Share of the budget that is flat search's own, and the share behind which that comes."""


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Weights of a message's own words and of its surroundings, by the kind of conversation."""

    own: float
    """Weight of the message's own score."""
    near: float
    """Weight of the score of its surroundings."""
    nearer: float
    """Weight of the surroundings' surroundings."""
    alone: float
    """Share of both weights that is left where nobody answers anybody."""
    reach: float
    """Reach of the surroundings in tokens."""
    price: float
    """Weight of the price, which is the logarithm of a quote's tokens, its frame included. At 1
    the count of messages found is highest; below, long ones that matter are found more often."""
    named: float
    """Bonus for the words of someone whom the query names, before it spreads around them."""


_DIALOGUE = RankWeights(own=1.0, near=2.0, nearer=1.0, alone=0.2, reach=80.0, price=0.9, named=2.0)
"""Of two: an answer often stands next to the words that were asked for."""
_MEETING = RankWeights(
    own=0.05, near=1.0, nearer=1.0, alone=1.0, reach=300.0, price=0.35, named=1.0
)
"""Of more: half sentences, of which no single one says much; a subject goes on for minutes."""

_LISTED = re.compile(r"[、，,；;]|以及|还有|和|\band\b")
_THING = 8
"""Tokens of a thing that a query lists at most."""
_LIST = range(3, 9)
"""Things that make a list; more are a text."""

_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)
_WHOSE, _ = load_patterns("cues/whose_words")
_YOU_SAID, _I_SAID = (re.compile(_WHOSE[name], re.IGNORECASE) for name in ("yours", "mine"))


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages as ranking takes them, in conversation order; arrays are [n]."""

    costs: Floats
    """Tokens of each."""
    from_user: Floats
    """1 for the user's own, else 0."""
    days: Sequence[frozenset[str]]
    """Words and numbers of the dates of days."""
    day: NDArray[np.integer]
    """Place of each one's day among them."""
    names: Sequence[str]
    """Names of the speakers; "" stands for all who have none."""
    speaker: NDArray[np.integer]
    """Place of each one's speaker among the names."""


def rank(
    query: str,
    cosine: Floats,
    lexical: Floats,
    messages: Messages,
    weights: RankWeights,
    trust: float = 1.0,
) -> Floats:
    """Priorities [n] of messages for quoting under a budget, higher first; no fixed scale.

    `cosine` is the similarity of each message's vector to the query's, `lexical` the BM25 of each,
    which counts as far as words are to be trusted.
    """
    price = np.log(messages.costs + _FRAME)
    both = standardize(cosine) + trust * standardize(lexical)
    found = standardize(_without_length(both, price))
    found = found + weights.named * _named(query, messages)
    # A long message says more surely than a short one what is talked about.
    weight = np.sqrt(messages.costs / _USUAL)
    position = np.cumsum(messages.costs) - messages.costs / 2
    near = neighbours(np.stack([found * weight, weight], axis=1), position, weights.reach)
    mass = _PULL + near[:, 1]
    once = near[:, 0] / mass
    twice = neighbours((once * weight)[:, None], position, weights.reach)[:, 0] / mass
    around = weights.near * once + weights.nearer * twice
    around *= weights.alone + (1 - weights.alone) * share_of_turns(messages)
    priority: Floats = weights.own * found + around - weights.price * price
    if _I_SAID.search(query) and not _YOU_SAID.search(query):
        priority = priority + _SELF * messages.from_user
    asked = {word for word in date_words(query) if word in _MONTHS or word.isdigit()}
    if asked:
        shared = np.array([len(asked & day) for day in messages.days])
        priority = priority + _DATE * shared[messages.day]
    return priority


def rank_again(
    query: str,
    cosine: Floats,
    lexical: Floats,
    messages: Messages,
    weights: RankWeights,
    trust: float,
    echoes: Callable[[Sequence[int]], Floats],
) -> Floats:
    """The same with a second look; `echoes` scores all by words that those at some places share."""
    first = rank(query, cosine, lexical, messages, weights, trust)
    best = np.argpartition(-first, min(_FIRST, len(first)) - 1)[:_FIRST]
    words = standardize(lexical) + _ECHO * standardize(echoes(best.tolist()))
    return rank(query, cosine, words, messages, weights, trust)


def keep_floor(
    best: NDArray[np.intp],
    flat: Floats,
    costs: Floats,
    budget: float,
    things: Sequence[Floats] = (),
) -> NDArray[np.intp]:
    """The messages by place, with what flat search finds in a part of the budget well within it.

    So the ranking finds no less than flat search does in that part, on whatever kind of talk it
    errs. Behind half of the budget it is early enough to be quoted, with headings and days, and
    does not say which topic is best. The best message for each thing that the query lists comes
    there too, if half of the budget has room for all: so an answer that rests on many has one of
    each, and not many of a few.

    Args:
        best: Places of messages, the best first.
        flat: Scores of all messages [n]; see `search_flat`.
        costs: Tokens of all messages [n], at least 1.
        budget: Tokens that a turn's recall may add.
        things: Scores of all messages [n] for each thing that is listed; see `listed_things`.
    """
    scores, room, costs = flat[best], _FLOOR * budget, costs + _FRAME
    likely = best  # sorting all takes long in a long session
    if room + 1 < len(best):
        likely = best[scores >= np.partition(scores, -int(room + 1))[-int(room + 1)]]
    found = likely[np.argsort(-flat[likely], kind="stable")]
    found = found[np.cumsum(costs[found]) <= room]
    ahead = int(np.searchsorted(np.cumsum(costs[best]), _SAFE * budget, "right"))
    first, rest = best[:ahead], best[ahead:]
    listed = [best[int(scores[best].argmax())] for scores in things if len(best)]
    missed = np.setdiff1d(np.array(listed, dtype=np.intp), first)
    if costs[missed].sum() > (1 - _SAFE) * budget:
        missed = missed[:0]
    own = np.concatenate([missed, found[~np.isin(found, [*first, *missed])]])
    return np.concatenate([first, own, rest[~np.isin(rest, own)]])


def search_flat(cosine: Floats, lexical: Floats, trust: float = 1.0) -> Floats:
    """Scores [n] of messages by their own words alone: neither place nor price counts."""
    return standardize(cosine) + trust * _WORDS * standardize(lexical)


def level_languages(cosine: Floats, chinese: NDArray[np.bool_]) -> Floats:
    """Cosines [n] with less of what a message's language alone gives them.

    Sentences of one language are nearer to one another than their meanings are. Where all are in
    one, nothing changes.
    """
    levelled = cosine.copy()
    for own in (chinese, ~chinese):
        if 0 < own.sum() < len(own):
            more = cosine[own].mean() - cosine.mean()
            levelled[own] -= _LEVEL * more * own.sum() / (own.sum() + _FEW)
    return levelled


def trust_words(query: str, cover: float) -> float:
    """The trust in BM25, 0 to 1: in Chinese, as far as it found the query's words.

    `cover` is the share of their weight that the best message holds. Chinese words are compared by
    their characters. Where none is shared but 的 and 了, BM25 is noise that buries what was meant.
    """
    chinese = script_shares(query).chinese
    return 1 - chinese * (1 - min(1.0, cover**2 / _COVERED))


def asked_first(
    best: NDArray[np.intp], asked: NDArray[np.bool_], topics: NDArray[np.integer]
) -> NDArray[np.intp]:
    """The messages of the days that the user asks for, and then the others.

    Of these days every topic has its say: first the best message of each, then the second of each.
    `best` are the places of all messages [n], the best first; the others [n] go by place.
    """
    of_days = best[asked[best]]
    turn, seen = np.zeros(len(of_days), dtype=np.intp), Counter[int]()
    for place, topic in enumerate(topics[of_days].tolist()):
        turn[place] = seen[topic]
        seen[topic] += 1
    return np.concatenate([of_days[np.argsort(turn, kind="stable")], best[~asked[best]]])


def listed_things(query: str) -> list[str]:
    """The things that a query lists: its short parts between commas or `and`."""
    parts = [part.strip() for part in _LISTED.split(query)]
    short = [part for part in parts if 0 < count_budget_tokens(part) <= _THING]
    return short if len(short) in _LIST else []


def weights_for(messages: Messages) -> RankWeights:
    """A meeting if more than two people have a part in it."""
    shares = np.bincount(messages.speaker, minlength=len(messages.names)) / len(messages.speaker)
    parties = [n for n, share in zip(messages.names, shares, strict=True) if n and share >= _PARTY]
    return _MEETING if len(parties) > 2 else _DIALOGUE


def share_of_turns(messages: Messages) -> float:
    """The share of the messages that another sends than the one before, 0 to 1.

    Where people take turns, an answer stands next to what it answers. Who writes in bursts, or
    alone, jumps from one thing to the next.
    """
    same = (np.diff(messages.speaker) == 0) & (np.diff(messages.from_user) == 0)
    return 1 - float(same.mean()) if len(same) else 1.0


def _named(query: str, messages: Messages) -> Floats:
    """The share of each speaker's name that is in the query, 0 to 1, over the mean of all."""
    asked = set(words_of(query))
    names = [_words_of_name(name) for name in messages.names]
    shares = np.array([sum(w in asked for w in n) / max(1, len(n)) for n in names])
    named: Floats = shares[messages.speaker]
    return np.asarray(named - named.mean())


@lru_cache(4096)
def _words_of_name(name: str) -> tuple[str, ...]:
    return tuple(words_of(name))


def date_words(text: str) -> frozenset[str]:
    """Words and numbers of a text, in lower case."""
    return frozenset(re.findall(r"[a-z]+|\d+", text.lower()))


@lru_cache(4096)
def words_of_day(day: str) -> frozenset[str]:
    """Month name, day and year of an ISO day; nothing of anything else."""
    year, _, rest = day.partition("-")
    month, _, date = rest.partition("-")
    if not (year.isdigit() and month.isdigit() and date.isdigit() and 1 <= int(month) <= 12):
        return frozenset()
    return frozenset({calendar.month_name[int(month)].lower(), str(int(date)), year})


def _without_length(scores: Floats, price: Floats) -> Floats:
    """Scores less what a message's length alone would give it."""
    centred = price - price.mean()
    # No `@`: for so little each of BLAS's threads waits longer for the others than it works.
    variance = float((centred * centred).sum())
    if variance < 1e-9:
        return scores
    return np.asarray(scores - (float((scores * centred).sum()) / variance) * centred)


def standardize(values: Floats) -> Floats:
    """Values in spreads from their mean; zeros where all are the same."""
    spread = float(values.std())
    return np.asarray((values - values.mean()) / (spread if spread > 1e-9 else 1.0))


Floats = NDArray[np.float64]


def neighbours(values: Floats, position: Floats, reach: float) -> Floats:
    """Sum [n, columns] over all others, each weighted by `exp(-distance / reach)`, in n log n.

    Ascending positions [n] and the reach are in tokens.
    """
    if len(values) < 2:
        return np.zeros_like(values)
    decay = np.exp(-np.diff(position) / reach)
    left = _running(np.r_[0, decay], values) - values
    right = _running(np.r_[0, decay[::-1]], values[::-1])[::-1] - values
    return left + right


def _running(decay: Floats, values: Floats) -> Floats:
    """`u[i] = decay[i] * u[i - 1] + values[i]` along the first axis, by doubling."""
    decay, total, step = decay.copy(), values.copy(), 1
    while step < len(total):
        total[step:] += decay[step:, None] * total[:-step]
        decay[step:] *= decay[:-step]
        step *= 2
        if decay[step:].max(initial=0) < 1e-12:
            break
    return total
