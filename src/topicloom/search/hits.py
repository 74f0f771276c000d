"""What a query finds in a session: how well messages fit it, and what they are worth in a note."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topicloom.search.ranking import Asked

EXCERPT_PARTS = 4
"""An original that is quoted in part has at most one in so many tokens of a turn's recall. One that
is longer is charged no more than that: it is quoted in part, or passed over."""
_REACH = 8
"""Recall budgets of best messages past which nothing is worth quoting."""
SURE_COSINE = 0.45
"""Similarity from which something was surely found."""
SURE_COVER = 0.6
"""Share of the query's words from which something was surely found."""
_FIT_COSINE = 0.25
"""Similarity from which a message fits a query."""
_FIT_ALONE = 0.26
"""The same where no message has any word of the query."""
_FIT_WORDS = 0.25
"""Share of the best BM25 from which a message fits. With these three, a search in LoCoMo shows half
of a session and misses 6 of 172 messages of evidence."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The messages and topics that a query finds."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Worth of messages, by short id, 0 to 1, best first; only those worth anything."""
    topics: Mapping[str, float] = field(default_factory=dict)
    """Relevance of topics, by id, 0 to 1."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """The topic that owns each of these messages, by short id of the message."""
    doubtful: frozenset[str] = frozenset()
    """Those of them that fit the query neither in meaning nor in words; none if `priced`."""
    about: Mapping[str, float] = field(default_factory=dict)
    """Probability of the topics that the query is about, by id, best first; those alone that are
    not unlikely. The ranking prefers them. Empty if it is not `priced`."""
    idle: bool = False
    """True if the user's message needs nothing from earlier messages: then nothing is found."""

    def find_in_other_topics(self, topics: Container[str], least: float) -> list[str]:
        """The messages of other topics than these whose worth is at least so much, best first."""
        return [m for m, w in self.weights.items() if w >= least and self.owners[m] not in topics]


def select_fitting(asked: Asked) -> NDArray[np.bool_]:
    """True for messages that fit a query in meaning or in words [n]."""
    most = float(asked.lexical.max(initial=0.0))
    if most <= 0:
        return asked.cosine >= _FIT_ALONE
    return (asked.cosine >= _FIT_COSINE) | (asked.lexical >= _FIT_WORDS * most)


def rate_sureness(asked: Asked) -> float:
    """From 1 on, something was found for sure."""
    if asked.days is not None and asked.days.any():
        return 1.0
    return max(float(asked.cosine.max()) / SURE_COSINE, asked.cover / SURE_COVER)


def sort_descending(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """Places [n] of scores, the highest first."""
    return np.argsort(-scores, kind="stable")


def weigh_by_rank(costs: NDArray[np.float64], budget: int) -> NDArray[np.float64]:
    """Weights of messages by their place in the ranking.

    The scale of priorities says nothing across queries; the place says whether a message would
    fit the budget: 1 for the best, 1/2 where the budget ends, 0 from `_REACH` budgets on. Costs are
    tokens of messages [n], the best first.
    """
    before = np.cumsum(costs) - costs
    return np.where(before < _REACH * budget, budget / (budget + before), 0.0)
