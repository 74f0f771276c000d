"""A search of a session's messages: what a query finds, and what each message is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from topicloom.search.centroids import TopicCentroids
from topicloom.search.embedder import Embedder, Vectors, dot_products
from topicloom.search.hits import EXCERPT_PARTS, Compared, Hits, sort_descending, weigh_by_rank
from topicloom.search.message_table import MessageTable
from topicloom.search.need import load_need_examples
from topicloom.search.ranking import FLAT, LOOK_UP, RECALL, Asked, Floats
from topicloom.search.time_expressions import Days
from topicloom.search.turn_topics import TurnContext, prefer_recent_topics, weigh_topics
from topicloom.search.vectors import vectors_of

_CALLS_FOR, _MOST_STANDING = 0.25, 3
"""Similarity from which a message calls for a standing request of the user, and how many at most.
Of 335 messages that need nothing, at most 4 % come so near to one, in any of seven conversations
(`prompts/cues/standing_*.txt` has the words that tell them)."""
_LIKELY, _MOST_LIKELY = 0.1, 3
"""Probability from which a topic is named as one that a query is about, and how many at most."""


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
        compared = self._compare(query.text, vector)
        need = self._rate_need(query, vector, compared.best)
        if need < self.least:
            return self._find_standing(compared.likeness, query.include_archived)
        hidden = [] if query.include_archived else self.archived
        # What is larger than the budget is quoted in part.
        costs = np.minimum(view.messages.costs, self.budget)
        asked = Asked(
            query.text,
            replace(view.messages, costs=costs),
            compared.likeness,
            compared.lexical,
            compared.cover,
            days=query.days and view.of_days(*query.days.ends),
        )
        topics = self._weigh_topics(query, vector, FLAT.rank(asked), hidden)
        asked = replace(asked, in_turn=topics[view.topics])
        best = sort_descending((RECALL if query.priced else LOOK_UP).rank(asked))
        best = best[~(view.held_by(hidden) | view.empty)[best]]
        ranked = weigh_by_rank(np.minimum(costs[best], self.budget / EXCERPT_PARTS), self.budget)
        found = ranked > 0
        if query.from_user:
            found &= ranked * need >= self.least
        sure = 1.0 if asked.days is not None and asked.days.any() else compared.sure
        ranked = ranked * min(1.0, max(0.0, sure))
        relevance = self.centroids.relevance(vector).items()
        known = {topic: value for topic, value in relevance if topic not in hidden}
        fits = np.ones(len(costs), dtype=bool) if query.priced else compared.fits
        hits = self._collect(best[found], ranked[found], known, fits)
        likely = prefer_recent_topics(topics, view.grouping, view.opens)
        return replace(hits, about=self._name_likely(likely))

    def _compare(self, text: str, vector: Vectors) -> Compared:
        """All messages, compared with a text and its vector [d]."""
        likeness = dot_products(self.table.matrix, vector).astype(float)
        return Compared(likeness, *self.table.words.scores(text))

    def _rate_need(self, query: Query, message: Vectors, best: float) -> float:
        """Probability that a message, with its vector [d], needs anything of earlier ones."""
        if not query.from_user or not self.least:
            return 1.0
        examples = load_need_examples(self.embedder, query.text)
        return 1.0 if examples is None else examples.rate(message, best)

    def _find_standing(self, likeness: Floats, include_archived: bool) -> Hits:
        """Standing requests that a message calls for: "Whenever I sneeze, say ..."."""
        view = self.table.view
        hidden = view.held_by([] if include_archived else self.archived)
        fits = np.where(view.standing & ~hidden, likeness, 0.0)
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

    def _name_likely(self, weights: Floats) -> dict[str, float]:
        """The topics that are not unlikely, by id, best first."""
        likely = [k for k in sort_descending(weights)[:_MOST_LIKELY] if weights[k] >= _LIKELY]
        return {self.table.view.name(k): round(float(weights[k]), 3) for k in likely}

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
