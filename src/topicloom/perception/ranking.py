"""What a message is worth for a query: words, meaning, surroundings, and what it costs.

Found by comparing evidence recall under a token budget on four kinds of conversations (two
people, an assistant, meetings, interleaved tasks); one set of constants serves all of them.
Ablations are in `docs/recall.md`.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topicloom.perception.spread import Floats, neighbours

_DENSE, _LEXICAL = 1.5, 1.0
"""Weights of the standardised cosine and BM25."""
_REACH, _PULL = 100.0, 1.0
"""Reach of the surroundings in tokens, and the pull towards "nothing near by"."""
_NEAR, _NEARER = 2.0, 1.0
"""Weights of the score of the surroundings, and of the surroundings' surroundings."""
_PRICE, _FRAME = 0.85, 4.0
"""Weight of the price, which is the logarithm of a quote's tokens, its frame included. At 1 the
count of messages found is highest; below, long messages that matter are found more often."""
_SELF, _DATE = 1.0, 0.5
"""Bonus for the user's own words when the query is about them, and for each named date word."""

_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)
_YOU_SAID = re.compile(
    r"\b(did|had|have|were) you\b|\byou (said|told|recommend|suggest|advis|mention|explain|propos"
    r"|gave|give|describ|outlin|provid)\w*\b"
    r"|\byour (suggestion|advice|recommendation|answer|explanation|proposal)|你",
    re.IGNORECASE,
)
_I_SAID = re.compile(
    r"\b(did|do|have|had|was|were|am|when|that|which|what|should) I\b"
    r"|\bI('ve| have| had| said| told| mention| want| ask| brought)\w*\b|\bmy\b|我",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Messages:
    """What ranking has to know of the messages, in conversation order; arrays are [n]."""

    costs: Floats
    """Tokens of each."""
    from_user: Floats
    """1 for the user's own, else 0."""
    dates: Sequence[frozenset[str]]
    """Words and numbers of each one's date."""


def rank(query: str, cosine: Floats, lexical: Floats, messages: Messages) -> Floats:
    """Priorities of messages for quoting under a budget, higher first; no fixed scale.

    Args:
        query: What is asked.
        cosine: Similarity of each message's vector to the query's.
        lexical: BM25 of each.
        messages: What they are.
    """
    price = np.log(messages.costs + _FRAME)
    found = _standard(
        _without_length(_DENSE * _standard(cosine) + _LEXICAL * _standard(lexical), price)
    )
    position = np.cumsum(messages.costs) - messages.costs / 2
    near = neighbours(np.stack([found, np.ones(len(found))], axis=1), position, _REACH)
    mass = _PULL + near[:, 1]
    once = near[:, 0] / mass
    twice = neighbours(once[:, None], position, _REACH)[:, 0] / mass
    priority: Floats = found + _NEAR * once + _NEARER * twice - _PRICE * price
    if _I_SAID.search(query) and not _YOU_SAID.search(query):
        priority = priority + _SELF * messages.from_user
    asked = date_words(query) & (_MONTHS | {w for w in date_words(query) if w.isdigit()})
    if asked:
        priority = priority + _DATE * np.array([len(asked & d) for d in messages.dates])
    return priority


def date_words(text: str) -> frozenset[str]:
    """Words and numbers of a text, in lower case."""
    return frozenset(re.findall(r"[a-z]+|\d+", text.lower()))


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
    variance = float(centred @ centred)
    if variance < 1e-9:
        return scores
    flattened: Floats = scores - (float(scores @ centred) / variance) * centred
    return flattened


def _standard(values: Floats) -> Floats:
    spread = float(values.std())
    scaled: Floats = (values - values.mean()) / (spread if spread > 1e-9 else 1.0)
    return scaled
