"""The index of a session's topics, for priors and for reading without a model."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from threading import RLock

import numpy as np
from cachetools import LRUCache

from topicloom.search.centroids import TopicCentroids
from topicloom.search.embedder import Embedder, FixedEmbedder
from topicloom.search.message_columns import (
    KNOWN_APART,
    LOOSE_TOPIC,
    Codes,
    join_columns,
    read_rounds,
)
from topicloom.search.message_search import Hits, MessageSearch, Query
from topicloom.search.message_table import MessageTable
from topicloom.search.vectors import StoredVectors
from topicloom.state.hierarchy import describe_topic, drop_empty
from topicloom.state.rounds import Round
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.log import SessionLog
from topicloom.storage.topic_reader import HeldMessage, TopicReader
from topicloom.topics.belonging import (
    Affinities,
    FiledRuns,
    file_runs,
    find_affinities,
    rate_rounds,
)
from topicloom.topics.runs import Runs, cut_runs

_PART = 8_192
"""Messages that are read and entered at a time: of a long session not all are held at once."""
_COMPARED, _NEWEST = 6_000, 24
"""Messages that rounds are compared with, about, and of each topic at least: its newest ones."""
_LATEST = 8
"""Searches whose results are remembered: those of a turn."""


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

    @property
    def embedder(self) -> Embedder:
        """The encoder that makes its vectors."""
        return self._encoder

    def _begin(self) -> None:
        self._embedder = FixedEmbedder(self._encoder)
        self._vectors = StoredVectors(self._embedder, self._log)
        self._clear()

    def _clear(self) -> None:
        self._renewals = self._log.renewals
        self._awaited = 0
        self._taken: TopicTable | None = None
        self._held: list[HeldMessage] = []
        self._table = MessageTable(self._vectors, self._embedder.dimension)
        self._archived: list[str] = []
        self._loose: list[str] = []
        self._centroids = TopicCentroids(self._vectors, self._embedder.dimension)
        self._latest: LRUCache[Query, Hits] = LRUCache(_LATEST)

    def update(self, table: TopicTable, reader: TopicReader) -> None:
        """Take in what topics gained.

        Messages of a divided or merged topic are found through the topics that have them now.
        """
        with self._lock:
            if self._renewals != self._log.renewals:
                self._begin()  # something was purged
            if self._vectors.incomplete and not self._vectors.left and not self.failure:
                self._begin()  # the encoder may be back
            if table is self._taken:
                return
            self._taken = None
            try:
                self._update(table, reader)
            except BaseException:  # what was read before it failed may count as taken in
                self._clear()
                raise
            self._taken = table

    def _update(self, table: TopicTable, reader: TopicReader) -> None:
        held, ranges = drop_empty(table), reader.ranges
        self._take_in(reader)
        changed = self._table.assign(held, ranges)
        texts = {t.id: describe_topic(t, table.topics) for t in held}
        if changed or self._centroids.outdated(texts):
            self._centroids.update(texts, [self._table.sum_of(topic) for topic in texts])
            self._latest.clear()
        self._loose = [t.id for t in table.loose()]
        archived = [t.id for t in table.archived()]
        if archived != self._archived:
            self._archived = archived
            self._latest.clear()

    def _take_in(self, reader: TopicReader) -> None:
        """Take in the messages behind those that are as they were."""
        held = reader.list_held()
        pairs = enumerate(zip(held, self._held, strict=False))
        shared = min(len(held), len(self._held))
        same = next((place for place, (now, before) in pairs if now != before), shared)
        self._table.cut(same)
        self._awaited = len(held)
        for begin in range(same, len(held), _PART):
            messages = reader.read([number for number, _ in held[begin : begin + _PART]])
            self._table.add(messages, reader.refs(messages))
        self._held, self._awaited = held, 0

    @property
    def waiting(self) -> int:
        """Messages that are found by their words alone until their vectors are there."""
        return self._vectors.left

    @property
    def failure(self) -> str:
        """The fault of the encoder, in words; "" while it has none."""
        return getattr(self._encoder, "failure", "")

    @property
    def left(self) -> int:
        """Messages that the update that goes on has yet to take in."""
        return max(0, self._awaited - len(self._table))

    def search(self, query: Query) -> Hits:
        """Rank all messages and topics for a query; the newest queries are remembered."""
        with self._lock:
            hits = self._latest.get(query)
            if hits is None:
                search = MessageSearch(
                    self._table,
                    self._centroids,
                    self._embedder,
                    self._budget,
                    self._least,
                    self._archived,
                    self._loose,
                )
                hits = self._latest[query] = search.find(query) if len(self._table) else Hits()
            return hits

    def find_return(self, text: str, topics: Container[str]) -> str | None:
        """The one of some topics that a text returns to, by its kernel; None if it is new."""
        with self._lock:
            (vector,) = self._embedder.embed([text])
            return self._centroids.find_return(vector, topics)

    def affinities(
        self, rounds: Sequence[Round], continues: Sequence[float], topics: Iterable[Topic]
    ) -> Affinities:
        """How likely some rounds, which are in no topic, belong together and to topics.

        `continues` are log odds, for each round, that it goes on with the one before it.
        """
        if not rounds:
            return rate_rounds((), (), self._embedder)
        with self._lock:
            held = list(topics)
            words, voices = Codes(self._table.words.occurrences().codes), Codes()
            newest = max(_NEWEST, _COMPARED // max(1, len(held)))
            parts = [self._table.read_columns(held, voices, newest)] if len(self._table) else []
            parts.append(read_rounds(rounds, continues, self._embedder, words, voices))
            runs = cut_runs(join_columns(parts), words, voices)
            return find_affinities(runs, rounds, self._name_codes(held))

    def filed(
        self, topics: Sequence[Topic], boundaries: Collection[int] = (), most: int = 2_000
    ) -> FiledRuns:
        """The runs that topics hold, and how likely they belong together.

        Args:
            topics: Where to look. If they have too many runs, only the first ones.
            boundaries: Numbers of messages that go on with nothing.
            most: Runs that are compared, unless the first topic has more: all pairs of 2,000 take
                two seconds and 50 MB.
        """
        with self._lock:
            runs = self._cut_filed(topics, boundaries)
            if len(runs) > most:
                codes = [LOOSE_TOPIC if t.loose else self._table.code_of(t.id) for t in topics]
                counts = [int((runs.topic == code).sum()) for code in codes]
                fit = max(1, int(np.searchsorted(np.cumsum(counts), most, "right")))
                topics = topics[:fit]
                runs = self._cut_filed(topics, boundaries)
            return file_runs(runs, self._name_codes(topics))

    def _cut_filed(self, topics: Sequence[Topic], boundaries: Collection[int]) -> Runs:
        words, voices = Codes(self._table.words.occurrences().codes), Codes()
        most = max((t.count for t in topics), default=0)
        columns = self._table.read_columns(topics, voices, most)
        columns.continues[np.isin(columns.number, list(boundaries))] = -KNOWN_APART
        return cut_runs(columns, words, voices)

    def _name_codes(self, topics: Sequence[Topic]) -> dict[int, str]:
        """The topics with messages, but for loose ends, by their codes."""
        coded = {self._table.code_of(t.id): t.id for t in topics if not t.loose}
        return {code: topic for code, topic in coded.items() if code >= 0}
