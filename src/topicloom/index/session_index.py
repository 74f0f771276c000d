"""The index of a session's topics, for priors and for reading without a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import replace
from threading import RLock

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from topicloom.index.belonging import FiledRuns, Ties, file_runs, find_ties, tie_rounds
from topicloom.index.centroids import TopicCentroids
from topicloom.index.embedder import Embedder, FixedEmbedder, Vectors, dot_products
from topicloom.index.hits import EXCERPT_PARTS, Compared, Hits, sort_descending, worth
from topicloom.index.message_columns import (
    KNOWN_APART,
    LOOSE_TOPIC,
    Codes,
    join_columns,
    read_rounds,
)
from topicloom.index.message_table import Gain, MessageTable
from topicloom.index.need import load_need_examples
from topicloom.index.ranking import (
    asked_first,
    keep_floor,
    level_languages,
    listed_things,
    rank_again,
    search_flat,
    trust_words,
    weights_for,
)
from topicloom.index.runs import Runs, cut_runs
from topicloom.index.time_expressions import Days
from topicloom.index.turn_topics import (
    ANY,
    TopicWeights,
    TurnContext,
    fill_in_turn,
    goes_on,
    is_with_assistant,
    prefer_lately_said,
    prefer_own_words,
    prefer_topics,
    weigh_going_on,
    weigh_topics,
)
from topicloom.index.vectors import StoredVectors, vectors_of
from topicloom.state.hierarchy import describe_topic, drop_empty
from topicloom.state.rounds import Round
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.log import SessionLog

_PART = 8_192
"""Messages that are read and entered at a time: of a long session not all are held at once."""
_COMPARED, _NEWEST = 6_000, 24
"""Messages that rounds are compared with, about, and of each topic at least: its newest ones."""
_LATEST = 8
"""Searches whose results are remembered: those of a turn."""
_NO_CONTEXT = TurnContext()
_CALLS_FOR, _MOST_STANDING = 0.25, 3
"""Similarity from which a message calls for a standing request of the user, and how many at most.
Of 335 messages that need nothing, at most 4 % come so near to one, in any of seven conversations
(`prompts/cues/standing_*.txt` has the words that tell them)."""


class SessionIndex:
    """Messages of all topics by words and vectors, topics by centroid and brief.

    It is a cache: made from storage, brought up to date by `update`, made anew when the session
    went back to an older checkpoint, and when something of it was purged.
    """

    def __init__(
        self, embedder: Embedder, log: SessionLog, budget: int, least: float = 0.0
    ) -> None:
        """An index of the messages in a log.

        Args:
            embedder: Makes vectors.
            log: Where the messages are.
            budget: Tokens that a turn's recall may add: what is worth quoting depends on it.
            least: Worth that a message needs to be quoted for a message of the user, 0 to 1; 0 to
                quote as much as there is room for, whatever the message.
        """
        self._least = least
        self._encoder = embedder
        self._budget = budget
        self._log = log
        self._lock = RLock()
        self._begin()

    def _begin(self) -> None:
        self._embedder = FixedEmbedder(self._encoder)
        self._vectors = StoredVectors(self._embedder, self._log)
        self._clear()

    def _clear(self) -> None:
        self._renewals = self._log.renewals
        self._awaited = 0
        self._taken: TopicTable | None = None
        self._heads: dict[str, tuple[int, str]] = {}
        self._table = MessageTable(self._vectors, self._embedder.dimension)
        self._archived: list[str] = []
        self._loose: list[str] = []
        self._centroids = TopicCentroids(self._vectors, self._embedder.dimension)
        self._latest: LRUCache[Hashable, Hits] = LRUCache(_LATEST)

    def update(
        self, table: TopicTable, read: Callable[[Topic, int], Sequence[StoredMessage]]
    ) -> None:
        """Take in what topics gained; `read` gives a topic's messages from its `n`th on.

        Messages of a divided or merged topic are found through the topics that have them now.
        """
        with self._lock:
            down = getattr(self._encoder, "failure", "")
            if self._renewals != self._log.renewals:
                self._begin()  # something was purged
            if self._vectors.incomplete and not self._vectors.left and not down:
                self._begin()  # the encoder may be back
            if table is self._taken:
                return
            self._taken = None
            try:
                self._update(table, read)
            except BaseException:  # what was read before it failed may count as taken in
                self._clear()
                raise
            self._taken = table

    def _update(
        self, table: TopicTable, read: Callable[[Topic, int], Sequence[StoredMessage]]
    ) -> None:
        held = drop_empty(table)
        changed = self._take(held, read)
        if changed is None:
            self._clear()
            self._take(held, read)
            changed = True
        self._awaited = 0
        texts = {t.id: describe_topic(t, table.topics) for t in held}
        if changed or self._centroids.outdated(texts):
            self._centroids.update(texts, [self._table.sum_of(topic) for topic in texts])
            self._latest.clear()
        self._loose = [t.id for t in table.loose()]
        archived = [t.id for t in table.archived()]
        if archived != self._archived:
            self._archived = archived
            self._latest.clear()

    @property
    def waiting(self) -> int:
        """Messages that are found by their words alone until their vectors are there."""
        return self._vectors.left

    @property
    def left(self) -> int:
        """Messages that the update that goes on has yet to take in."""
        return max(0, self._awaited - len(self._table))

    def search(
        self,
        query: str,
        days: Days | None = None,
        *,
        context: TurnContext = _NO_CONTEXT,
        from_user: bool = False,
        include_archived: bool = False,
        priced: bool = True,
    ) -> Hits:
        """Rank all messages and topics for a query.

        Args:
            days: When it was written, if the user says so: messages of these days come first.
            context: What the query goes on with: it tells which topics the turn is in.
            from_user: True if the query is the user's message, which may need nothing of all this;
                False if somebody looks for it.
            include_archived: True to find archived topics and their messages too.
            priced: False where nothing is quoted: a long message then comes no later for its
                length, and topics do not count.
        """
        key = (query, days, context.key, from_user, include_archived, priced)
        with self._lock:
            hits = self._latest.get(key)
            if hits is None:
                asked = (query, days, context, from_user, include_archived, priced)
                hits = self._search(*asked) if len(self._table) else Hits()
                self._latest[key] = hits
            return hits

    def ties(
        self, rounds: Sequence[Round], continues: Sequence[float], topics: Iterable[Topic]
    ) -> Ties:
        """How likely some rounds, which are in no topic, belong together and to topics.

        `continues` are log odds, for each round, that it goes on with the one before it.
        """
        if not rounds:
            return tie_rounds((), (), self._embedder)
        with self._lock:
            held = list(topics)
            words, voices = Codes(self._table.words.occurrences().codes), Codes()
            newest = max(_NEWEST, _COMPARED // max(1, len(held)))
            parts = [self._table.read_columns(held, voices, newest)] if len(self._table) else []
            parts.append(read_rounds(rounds, continues, self._embedder, words, voices))
            runs = cut_runs(join_columns(parts), words, voices)
            return find_ties(runs, rounds, self._name_codes(held))

    def filed(
        self, topics: Sequence[Topic], parted: Collection[int] = (), most: int = 2_000
    ) -> FiledRuns:
        """The runs that topics hold, and how likely they belong together.

        Args:
            topics: Where to look. If they have too many runs, only the first ones.
            parted: Numbers of messages that go on with nothing.
            most: Runs that are compared, unless the first topic has more: all pairs of 2,000 take
                two seconds and 50 MB.
        """
        with self._lock:
            runs = self._cut_filed(topics, parted)
            if len(runs) > most:
                codes = [LOOSE_TOPIC if t.loose else self._table.code_of(t.id) for t in topics]
                counts = [int((runs.topic == code).sum()) for code in codes]
                fit = max(1, int(np.searchsorted(np.cumsum(counts), most, "right")))
                topics = topics[:fit]
                runs = self._cut_filed(topics, parted)
            return file_runs(runs, self._name_codes(topics))

    def _cut_filed(self, topics: Sequence[Topic], parted: Collection[int]) -> Runs:
        words, voices = Codes(self._table.words.occurrences().codes), Codes()
        most = max((t.count for t in topics), default=0)
        columns = self._table.read_columns(topics, voices, most)
        columns.continues[np.isin(columns.number, list(parted))] = -KNOWN_APART
        return cut_runs(columns, words, voices)

    def _name_codes(self, topics: Sequence[Topic]) -> dict[int, str]:
        """The topics with messages, but for loose ends, by their codes."""
        coded = {self._table.code_of(t.id): t.id for t in topics if not t.loose}
        return {code: topic for code, topic in coded.items() if code >= 0}

    def _take(
        self, table: TopicTable, read: Callable[[Topic, int], Sequence[StoredMessage]]
    ) -> bool | None:
        """Take in what topics gained; True if it was anything, None if it does not fit."""
        lost = [i for i in self._heads if not self._has_only_gained(table.get(i))]
        for topic_id in lost:
            del self._heads[topic_id]
        if lost:
            self._table.release(lost)
        gains, gained = list[Gain](), False
        self._awaited = sum(topic.count for topic in table)
        for topic in table:
            count, head = self._heads.get(topic.id, (0, None))
            if topic.head is not None and topic.head != head:
                gains.append(self._gain(topic, read(topic, count)))
                self._heads[topic.id] = (count + len(gains[-1].messages), topic.head)
                if not lost and sum(len(gain.messages) for gain in gains) >= _PART:
                    gained = self._table.enter(gains)
                    gains = [] if gained else gains
        if not (lost or gains):
            return gained
        return self._table.enter(gains) or None

    def _gain(self, topic: Topic, messages: Sequence[StoredMessage]) -> Gain:
        """Messages that a topic gained, with their places: they are the last of its chain."""
        refs = self._log.refs(topic.chain, topic.head)
        places = [(topic.chain, ref) for ref in refs[len(refs) - len(messages) :]]
        return Gain(topic.id, messages, places)

    def _has_only_gained(self, topic: Topic | None) -> bool:
        """True if a topic in the index has at most gained messages."""
        if topic is None or topic.head is None:
            return False
        count, head = self._heads[topic.id]
        if head == topic.head:
            return True
        refs = self._log.refs(topic.chain, topic.head)
        return count <= len(refs) and refs[count - 1] == head

    def _search(
        self,
        query: str,
        days: Days | None,
        context: TurnContext,
        from_user: bool,
        include_archived: bool,
        priced: bool,
    ) -> Hits:
        view, things = self._table.view, listed_things(query)
        vector, *others = self._embedder.embed([query, *things])
        # What is larger than the budget is quoted in part.
        costs = np.minimum(view.messages.costs, self._budget)
        compared = self._compare(query, vector)
        need = self._rate_need(query, vector, compared.best) if from_user else 1.0
        if need < self._least:
            return self._find_standing(compared.likeness, include_archived)
        cosine, lexical, trust = compared.cosine, compared.lexical, compared.trust
        messages = replace(view.messages, costs=costs)
        manner = weights_for(messages)
        manner = manner if priced else replace(manner, price=0.0)

        def echoes(places: Sequence[int]) -> NDArray[np.float64]:
            return self._table.words.echoes(view.order[places].tolist(), query)[view.order]

        priority = rank_again(query, cosine, lexical, messages, manner, trust, echoes)
        flat = search_flat(cosine, lexical, trust)
        best = sort_descending(priority)
        hidden = [] if include_archived else self._archived
        if priced:
            weights = self._weigh_topics(vector, context, flat, hidden)
            with_assistant = is_with_assistant(messages.from_user, view.others)
            going_on = from_user and with_assistant and goes_on(query, vector, self._embedder)
            follows = weigh_going_on(weights, view.grouping) if going_on else ANY
            best = self._order(priority, weights, costs, follows)
        best = best[~(view.held_by(hidden) | view.empty)[best]]
        parts = (self._compare(*pair) for pair in zip(things, others, strict=True))
        listed = [flat + search_flat(p.cosine, p.lexical, p.trust) for p in parts]
        best = keep_floor(best, flat, costs, self._budget, listed)
        sure = compared.sure
        if days is not None:
            asked = view.of_days(days.first.isoformat(), days.last.isoformat())
            best = asked_first(best, asked, view.topics)
            sure = max(sure, float(asked.any()))
        worths = worth(np.minimum(costs[best], self._budget / EXCERPT_PARTS), self._budget)
        found = worths > 0
        if from_user:
            found &= worths * need >= self._least
        worths = worths * min(1.0, max(0.0, sure))
        relevance = self._centroids.relevance(vector).items()
        topics = {topic: value for topic, value in relevance if topic not in hidden}
        worth_of, owners, doubtful = {}, {}, set[str]()
        fits = np.ones(len(costs), dtype=bool) if priced else compared.fits
        for place, weight in zip(best[found].tolist(), worths[found].tolist(), strict=True):
            message, topic = f"m{view.numbers[place]}", view.topic(place)
            worth_of[message], owners[message] = weight, topic
            if not fits[place]:
                doubtful.add(message)
            topics[topic] = max(topics.get(topic, 0.0), weight)
        return Hits(worth_of, topics, owners, frozenset(doubtful))

    def _find_standing(self, likeness: NDArray[np.float64], include_archived: bool) -> Hits:
        """What a message that needs nothing else may call for: "Whenever I sneeze, say ..."."""
        view = self._table.view
        hidden = view.held_by([] if include_archived else self._archived)
        fits = np.where(view.standing & ~hidden, likeness, 0.0)
        best = [p for p in sort_descending(fits)[:_MOST_STANDING].tolist() if fits[p] >= _CALLS_FOR]
        if not best:
            return Hits(idle=True)
        owners = {f"m{view.numbers[place]}": view.topic(place) for place in best}
        return Hits(dict.fromkeys(owners, 1.0), dict.fromkeys(owners.values(), 1.0), owners)

    def _rate_need(self, text: str, message: Vectors, best: float) -> float:
        """Probability that a message, with its vector [d], needs anything of earlier ones."""
        examples = load_need_examples(self._embedder, text) if self._least else None
        return 1.0 if examples is None else examples.rate(message, best)

    def _weigh_topics(
        self,
        query: Vectors,
        context: TurnContext,
        flat: NDArray[np.float64],
        hidden: Sequence[str],
    ) -> NDArray[np.float64]:
        """The probability that a turn is in each topic [k], by the numbers of the view."""
        view, mean = self._table.view, self._table.mean
        before = vectors_of(context.read(), self._embedder)
        ignored = view.numbers_of([*hidden, *self._loose])
        return weigh_topics(query, before, context.continues, flat, mean, view.grouping, ignored)

    def _order(
        self,
        priority: NDArray[np.float64],
        weights: NDArray[np.float64],
        costs: NDArray[np.float64],
        manner: TopicWeights,
    ) -> NDArray[np.intp]:
        """Places of messages, the best first, by the message and by the topics of the turn."""
        view = self._table.view
        own = view.messages.from_user
        alone = prefer_own_words(priority, own, view.opens, view.standing, view.others, manner)
        alone = prefer_lately_said(alone, manner)
        beginnings = view.opens & (own > 0)
        preferred = prefer_topics(alone, weights, view.grouping, beginnings, manner)
        orders = sort_descending(alone), sort_descending(preferred)
        return fill_in_turn(*orders, costs, self._budget, weights, manner)

    def _compare(self, query: str, vector: NDArray[np.float32]) -> Compared:
        view = self._table.view
        likeness = dot_products(self._table.matrix, vector).astype(float)[view.order]
        lexical, cover = self._table.words.scores(query)
        cosine = level_languages(likeness, view.chinese)
        best, trust = float(likeness.max()), trust_words(query, cover)
        return Compared(likeness, cosine, lexical[view.order], best, cover, trust)
