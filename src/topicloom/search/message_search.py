"""A search of a session's messages: what a query finds, and what each message is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from topicloom.search.about import find_likely
from topicloom.search.centroids import TopicCentroids
from topicloom.search.embedder import Embedder, Vectors, dot_products
from topicloom.search.hits import (
    EXCERPT_PARTS,
    Hits,
    rate_sureness,
    select_fitting,
    sort_descending,
    weigh_by_rank,
)
from topicloom.search.message_table import MessageTable
from topicloom.search.need import load_need_examples
from topicloom.search.ranking import FLAT, LOOK_UP, RECALL, Asked, Floats
from topicloom.search.time_expressions import Days
from topicloom.search.turn_topics import TurnContext, weigh_topics
from topicloom.search.vectors import vectors_of

_CALLS_FOR, _MOST_STANDING = 0.25, 3
"""Similarity from which a message calls for a standing request of the user, and how many at most.
Of 335 messages that need nothing, at most 4 % come so near to one, in any of seven conversations
(`prompts/cues/standing_*.txt` has the words that tell them)."""


@dataclass(frozen=True, slots=True)
class Query:
    """A search; `SessionIndex.search` says what each part does."""

    text: str
    days: Days | None = None
    context: TurnContext = field(default_factory=TurnContext)
    from_user: bool = False
    include_archived: bool = False
    priced: bool = True


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
        costs = np.minimum(asked.messages.costs[best], self.budget / EXCERPT_PARTS)
        ranked = weigh_by_rank(costs, self.budget)
        found = (ranked > 0) & (ranked * need >= self.least * query.from_user)
        ranked = ranked * min(1.0, max(0.0, rate_sureness(asked)))
        relevance = self.centroids.relevance(vector).items()
        known = {topic: value for topic, value in relevance if topic not in hidden}
        fits = np.ones(len(view.empty), dtype=bool) if query.priced else select_fitting(asked)
        hits = self._collect(best[found], ranked[found], known, fits)
        likely = find_likely(topics, view.grouping, view.opens)
        return replace(hits, about={view.name(k): share for k, share in likely.items()})

    def _compare(self, query: Query, vector: Vectors) -> Asked:
        """All messages, compared with a query and its vector [d]."""
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
        return 1.0 if examples is None else examples.rate(message, best)

    def _find_standing(self, likeness: Floats, hidden: Sequence[str]) -> Hits:
        """Standing requests that a message calls for: "Whenever I sneeze, say ..."."""
        view = self.table.view
        fits = np.where(view.standing & ~view.held_by(hidden), likeness, 0.0)
        best = [p for p in sort_descending(fits)[:_MOST_STANDING].tolist() if fits[p] >= _CALLS_FOR]
        if not best:
            return Hits(idle=True)
        owners = {f"m{view.numbers[place]}": view.topic(place) for place in best}
        return Hits(dict.fromkeys(owners, 1.0), dict.fromkeys(owners.values(), 1.0), owners)

    def _weigh_topics(
        self, query: Query, vector: Vectors, flat: Floats, hidden: Sequence[str]
    ) -> Floats:
        """The probability that a turn is in each topic [k], by the numbers of the view."""
        view, mean, context = self.table.view, self.table.mean, query.context
        if not query.priced:
            return np.zeros(len(view.grouping.means))
        before = vectors_of(context.read(), self.embedder)
        ignored = view.numbers_of([*hidden, *self.loose])
        return weigh_topics(vector, before, context.continues, flat, mean, view.grouping, ignored)

    def _collect(
        self,
        best: NDArray[np.intp],
        ranked: Floats,
        topics: dict[str, float],
        fits: NDArray[np.bool_],
    ) -> Hits:
        """Messages by short id, and topics at least as relevant as the best of their messages."""
        view = self.table.view
        weights, owners, doubtful = {}, {}, set[str]()
        for place, weight in zip(best.tolist(), ranked.tolist(), strict=True):
            message, topic = f"m{view.numbers[place]}", view.topic(place)
            weights[message], owners[message] = weight, topic
            if not fits[place]:
                doubtful.add(message)
            topics[topic] = max(topics.get(topic, 0.0), weight)
        return Hits(weights, topics, owners, frozenset(doubtful))
