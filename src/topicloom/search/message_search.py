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
from topicloom.search.ranking import (
    Floats,
    asked_first,
    keep_floor,
    level_languages,
    listed_things,
    rank_again,
    search_flat,
    trust_words,
    weights_for,
)
from topicloom.search.time_expressions import Days
from topicloom.search.turn_order import (
    ANY,
    fade_lately,
    fill_in_turn,
    is_with_assistant,
    prefer_lately_said,
    prefer_own_words,
    prefer_topics,
)
from topicloom.search.turn_topics import (
    TurnContext,
    goes_on,
    prefer_recent_topics,
    weigh_topics,
)
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
        view, things = self.table.view, listed_things(query.text)
        vector, *others = self.embedder.embed([query.text, *things])
        compared = self._compare(query.text, vector)
        need = self._rate_need(query, vector, compared.best)
        if need < self.least:
            return self._find_standing(compared.likeness, query.include_archived)
        # What is larger than the budget is quoted in part.
        costs = np.minimum(view.messages.costs, self.budget)
        hidden = [] if query.include_archived else self.archived
        weights = self._weigh_topics(query, vector, compared.flat, hidden)
        best = self._rank(query, vector, compared, costs, weights)
        best = best[~(view.held_by(hidden) | view.empty)[best]]
        parts = (self._compare(*pair) for pair in zip(things, others, strict=True))
        listed = [compared.flat + part.flat for part in parts]
        best = keep_floor(best, compared.flat, costs, self.budget, listed)
        sure = compared.sure
        if query.days is not None:
            asked = view.of_days(query.days.first.isoformat(), query.days.last.isoformat())
            best = asked_first(best, asked, view.topics)
            sure = max(sure, float(asked.any()))
        ranked = weigh_by_rank(np.minimum(costs[best], self.budget / EXCERPT_PARTS), self.budget)
        found = ranked > 0
        if query.from_user:
            found &= ranked * need >= self.least
        ranked = ranked * min(1.0, max(0.0, sure))
        relevance = self.centroids.relevance(vector).items()
        topics = {topic: value for topic, value in relevance if topic not in hidden}
        fits = np.ones(len(costs), dtype=bool) if query.priced else compared.fits
        hits = self._collect(best[found], ranked[found], topics, fits)
        likely = prefer_recent_topics(weights, view.grouping, view.opens)
        return replace(hits, about=self._name_likely(likely))

    def _compare(self, text: str, vector: Vectors) -> Compared:
        """All messages, compared with a text and its vector [d]."""
        view = self.table.view
        likeness = dot_products(self.table.matrix, vector).astype(float)
        lexical, cover = self.table.words.scores(text)
        cosine = level_languages(likeness, view.chinese)
        best, trust = float(likeness.max()), trust_words(text, cover)
        flat = search_flat(cosine, lexical, trust)
        return Compared(likeness, cosine, lexical, best, cover, trust, flat)

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

    def _rank(
        self,
        query: Query,
        vector: Vectors,
        compared: Compared,
        costs: Floats,
        weights: Floats,
    ) -> NDArray[np.intp]:
        """Places of all messages, the best first: by the message, and by the turn's topics [k]."""
        view = self.table.view
        messages = replace(view.messages, costs=costs)
        manner = weights_for(messages)
        manner = manner if query.priced else replace(manner, price=0.0)

        def echoes(places: Sequence[int]) -> Floats:
            return self.table.words.echoes(places, query.text)

        scores = compared.cosine, compared.lexical
        priority = rank_again(query.text, *scores, messages, manner, compared.trust, echoes)
        if not query.priced:
            return sort_descending(priority)
        own = messages.from_user
        with_assistant = query.from_user and is_with_assistant(own, view.others)
        going_on = with_assistant and goes_on(query.text, vector, self.embedder)
        follows = fade_lately(weights, view.grouping) if going_on else ANY
        alone = prefer_own_words(priority, own, view.opens, view.standing, view.others, follows)
        alone = prefer_lately_said(alone, follows)
        beginnings = view.opens & (own > 0)
        preferred = prefer_topics(alone, weights, view.grouping, beginnings, follows)
        orders = sort_descending(alone), sort_descending(preferred)
        return fill_in_turn(*orders, costs, self.budget, weights, follows)

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
