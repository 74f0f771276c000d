"""A search of a session's messages: what a query finds, and what each message is worth."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from topicloom.search.about import find_likely
from topicloom.search.centroids import TopicCentroids
from topicloom.search.embedder import Embedder, Vectors, dot_products
from topicloom.search.message_table import MessageTable
from topicloom.search.need import load_need_examples
from topicloom.search.ranking import FLAT, LOOK_UP, RECALL, Asked, Floats
from topicloom.search.time_expressions import Days
from topicloom.search.turn_topics import TurnContext, weigh_topics
from topicloom.search.vectors import vectors_of
from topicloom.state.note_draft import PARTS

_LIKELY = 0.2
"""Worth from which a message is found. All better ones together would fill the budget four times:
short ones fit where long ones left room."""
SURE_COSINE, SURE_COVER = 0.45, 0.6
"""Similarity, and share of the query's words, from which something was surely found."""
_FITS = 0.25
"""Similarity, or share of the best BM25, from which a message fits a query. (A search in LoCoMo
then shows half of a session, and misses 6 of 172 messages of evidence.)

From that similarity on, a message also calls for a standing request of the user. (Of 335 messages
that need nothing, at most 4 % come so near to one, in any of seven conversations.)"""


@dataclass(frozen=True, slots=True)
class Hits:
    """The messages and topics that a query finds."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Worth of messages, by short id, 0 to 1, best first; only those that are worth it."""
    topics: Mapping[str, float] = field(default_factory=dict)
    """Relevance of topics, by id, 0 to 1."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """The topic that owns each of these messages, by short id of the message."""
    doubtful: frozenset[str] = frozenset()
    """Those of them that fit the query neither in meaning nor in words."""
    about: Mapping[str, float] = field(default_factory=dict)
    """Probability of the topics that the query is about, by id, best first; those alone that are
    not unlikely. The ranking prefers them if it is `priced`."""
    idle: bool = False
    """True if the user's message needs nothing from earlier messages: then nothing is found."""

    def find_in_other_topics(self, topics: Container[str], least: float) -> list[str]:
        """The messages of other topics than these whose worth is at least so much, best first."""
        return [m for m, w in self.weights.items() if w >= least and self.owners[m] not in topics]


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for in a session."""

    text: str
    days: Days | None = None
    """When it was written, if the user says so: messages of these days come first."""
    context: TurnContext = field(default_factory=TurnContext)
    """What the text goes on with: it tells which topics the turn is in."""
    from_user: bool = False
    """True if it is the user's message, which may need nothing; False if somebody looks for it."""
    include_archived: bool = False
    """True to find archived topics and their messages too."""
    priced: bool = True
    """True to rank for a note, where a long message costs more than a short one. False to rank for
    somebody who looks for something: length and topics do not count, and twice as much is found."""


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """A search of the messages of all topics, as they are now."""

    table: MessageTable
    centroids: TopicCentroids
    embedder: Embedder
    budget: int
    """Tokens that a turn's recall may add."""
    least: float
    """Worth that a message needs to be quoted for a message of the user, 0 to 1."""
    archived: Sequence[str]
    """Topics that are searched only where the query says so."""
    loose: Sequence[str]
    """Topics of loose ends: no turn is in one."""

    def find(self, query: Query) -> Hits:
        """The hits of the query, in a table that holds at least one message."""
        view = self.table.view
        (vector,) = self.embedder.embed([query.text])
        asked = self._compare(query, vector)
        need = self._rate_need(query, vector, float(asked.cosine.max()))
        hidden = [] if query.include_archived else self.archived
        if need < self.least:
            return self._find_standing(asked.cosine, hidden)
        topics = self._weigh_topics(query, vector, FLAT.rank(asked), hidden)
        asked = replace(asked, in_turn=topics[view.topics])
        best = sort_descending((RECALL if query.priced else LOOK_UP).rank(asked))
        best = best[~(view.held_by(hidden) | view.empty)[best]]
        # A longer one is quoted in part, or passed over.
        costs = np.minimum(asked.messages.costs[best], self.budget / PARTS)
        worth = weigh_by_rank(costs, self.budget)
        least = _LIKELY if query.priced else _LIKELY / 2
        found = (worth >= least) & (worth * need >= self.least * query.from_user)
        best, worth = best[found], worth[found] * rate_sureness(asked)
        ids = [f"m{number}" for number in view.numbers[best].tolist()]
        weights = dict(zip(ids, worth.tolist(), strict=True))
        owners = dict(zip(ids, map(view.name, view.topics[best].tolist()), strict=True))
        relevance = self.centroids.relevance(vector)
        # A topic is at least as relevant as the best of its messages.
        for message, topic in owners.items():
            relevance[topic] = max(relevance.get(topic, 0.0), weights[message])
        likely = find_likely(topics, view.topics, view.opens)
        return Hits(
            weights,
            {topic: value for topic, value in relevance.items() if topic not in hidden},
            owners,
            doubtful=frozenset(compress(ids, ~select_fitting(asked)[best])),
            about={view.name(number): share for number, share in likely.items()},
        )

    def _compare(self, query: Query, vector: Vectors) -> Asked:
        view = self.table.view
        return Asked(
            query.text,
            # What is larger than the budget is quoted in part.
            replace(view.messages, costs=np.minimum(view.messages.costs, self.budget)),
            dot_products(self.table.matrix, vector).astype(float),
            *self.table.words.scores(query.text),
            days=None if query.days is None else view.of_days(*query.days.ends),
        )

    def _rate_need(self, query: Query, message: Vectors, best: float) -> float:
        """Probability that a message, with its vector [d], needs anything of earlier ones."""
        if not query.from_user or not self.least:
            return 1.0
        examples = load_need_examples(self.embedder, query.text)
        return 1.0 if examples is None else examples.rate(query.text, message, best)

    def _find_standing(self, likeness: Floats, hidden: Sequence[str]) -> Hits:
        """Standing requests that a message calls for: "Whenever I sneeze, say ..."."""
        view = self.table.view
        fits = np.where(view.standing & ~view.held_by(hidden), likeness, 0.0)
        best = [p for p in sort_descending(fits).tolist() if fits[p] >= _FITS]
        owners = {f"m{view.numbers[place]}": view.topic(place) for place in best}
        sure = dict.fromkeys(owners, 1.0)
        return Hits(sure, dict.fromkeys(owners.values(), 1.0), owners, idle=not best)

    def _weigh_topics(
        self, query: Query, vector: Vectors, flat: Floats, hidden: Sequence[str]
    ) -> Floats:
        """The probability that a turn is in each topic [k], by the numbers of the view."""
        view, mean, context = self.table.view, self.table.mean, query.context
        before = vectors_of(context.read(), self.embedder)
        ignored = view.numbers_of([*hidden, *self.loose])
        known = flat, view.means, mean, view.topics
        return weigh_topics(vector, before, context.continues, *known, ignored)


def select_fitting(asked: Asked) -> NDArray[np.bool_]:
    """True for messages that fit a query in meaning or in words [n]."""
    most = float(asked.lexical.max())
    return (asked.cosine >= _FITS) | (asked.lexical >= _FITS * most if most > 0 else False)


def rate_sureness(asked: Asked) -> float:
    """The sureness that anything was found, 0 to 1."""
    if asked.days is not None and asked.days.any():
        return 1.0
    sure = max(float(asked.cosine.max()) / SURE_COSINE, asked.cover / SURE_COVER)
    return min(1.0, max(0.0, sure))


def sort_descending(scores: Floats) -> NDArray[np.intp]:
    """Places [n] of scores, the highest first."""
    return np.argsort(-scores, kind="stable")


def weigh_by_rank(costs: Floats, budget: int) -> Floats:
    """Weights of messages by their place in the ranking.

    The scale of priorities says nothing across queries; the place says whether a message would
    fit the budget: 1 for the best, 1/2 where the budget ends. Costs are tokens of messages [n], the
    best first.
    """
    return budget / (budget + np.cumsum(costs) - costs)
