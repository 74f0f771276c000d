"""The index of a session: what its topics hold, for priors and for reading without a model."""

from __future__ import annotations

import calendar
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import budget_tokens
from topicloom.perception.embedder import Embedder, Vectors
from topicloom.perception.kernels import TopicKernels
from topicloom.perception.lexical import LexicalIndex
from topicloom.perception.ranking import Messages, rank
from topicloom.perception.screening import block_vectors
from topicloom.perception.vectors import StoredVectors
from topicloom.state.blocks import LogicalBlock
from topicloom.state.records import Record
from topicloom.state.topics import Roster, Topic
from topicloom.storage.base import SessionLog

_REACH = 8
"""Recall budgets of best messages past which nothing is worth quoting."""
_NEAREST = 3
"""Messages of a topic that say how near it is: one may be near by chance."""
_SURE_COSINE, _SURE_COVER = 0.45, 0.6
"""Similarity, and share of the query's words, from which something was found for sure."""


@dataclass(frozen=True, slots=True)
class Hits:
    """What a query finds."""

    weights: Mapping[str, float] = field(default_factory=dict)
    """Worth of messages, by short id, 0 to 1, best first; only those worth anything."""
    topics: Mapping[str, float] = field(default_factory=dict)
    """Relevance of topics, by id, 0 to 1."""


@dataclass(slots=True)
class _Rows:
    """What is held of the messages, in the order they were added."""

    numbers: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    from_user: list[bool] = field(default_factory=list)
    dates: list[frozenset[str]] = field(default_factory=list)


class SessionIndex:
    """Messages of all topics by words and vectors, topics by kernel and brief.

    It is a cache: made from storage, brought up to date by `update`, made anew when the session
    went back to an older checkpoint.
    """

    def __init__(self, embedder: Embedder, log: SessionLog, budget: int) -> None:
        """Args:
        embedder: Makes the vectors.
        log: Where they are stored.
        budget: Tokens that a turn's recall may add: what is worth quoting depends on it.
        """
        self._embedder = embedder
        self._budget = budget
        self._vectors = StoredVectors(embedder, log)
        self._log = log
        self._lock = RLock()
        self._clear()

    def _clear(self) -> None:
        self._heads: dict[str, tuple[int, str]] = {}
        self._rows = _Rows()
        self._words = LexicalIndex()
        self._matrix: Vectors = np.zeros((0, self._embedder.dimension), dtype=np.float32)
        self._kernels = TopicKernels(self._embedder)
        self._latest: OrderedDict[str, Hits] = OrderedDict()

    def update(self, roster: Roster, read: Callable[[Topic, int], list[Record]]) -> None:
        """Take in what topics gained.

        Args:
            roster: The topics of the checkpoint.
            read: Gives a topic's records from its `n`th on.
        """
        with self._lock:
            fresh = self._fresh(roster)
            if fresh is None:
                self._clear()
                fresh = self._fresh(roster) or []
            for topic, start, refs in fresh:
                self._add(topic, read(topic, start), refs)
            if fresh or self._kernels.outdated(roster):
                self._kernels.update(roster, self._matrix, self._rows.topics)
                self._latest.clear()

    def search(self, query: str) -> Hits:
        """Rank all messages and topics for a query."""
        with self._lock:
            hits = self._latest.get(query)
            if hits is None:
                hits = self._search(query) if self._rows.numbers else Hits()
                self._latest[query] = hits
                while len(self._latest) > 8:
                    self._latest.popitem(last=False)
            return hits

    def affinity(self, blocks: Sequence[LogicalBlock]) -> list[dict[str, float]]:
        """How near each topic is to some blocks.

        Returns:
            For each block, by topic, the mean of its highest cosines to messages of the topic,
            over its mean cosine to all messages: what a whole conversation has in common, such as
            the names of its speakers, says nothing.
        """
        with self._lock:
            cosines = block_vectors(blocks, self._embedder) @ self._matrix.T
            places: dict[str, list[int]] = {}
            for row, topic in enumerate(self._rows.topics):
                places.setdefault(topic, []).append(row)
            return [
                {t: mean_of_best(c[rows]) - float(c.mean()) for t, rows in places.items()}
                for c in cosines
            ]

    def _fresh(self, roster: Roster) -> list[tuple[Topic, int, Sequence[str]]] | None:
        """What each topic gained; None if a topic is not a continuation of what is held."""
        if any(topic_id not in roster for topic_id in self._heads):
            return None
        found = []
        for topic in roster:
            count, head = self._heads.get(topic.id, (0, ""))
            if topic.head is None or topic.head == head:
                continue
            refs = self._log.refs(topic.chain, topic.head)
            if count > len(refs) or (count and refs[count - 1] != head):
                return None
            found.append((topic, count, refs[count:]))
        return found

    def _add(self, topic: Topic, records: Sequence[Record], refs: Sequence[str]) -> None:
        texts = [r.line for r in records]
        self._matrix = np.concatenate([self._matrix, self._vectors.of(refs, texts)])
        for record in records:
            self._rows.numbers.append(record.seq)
            self._rows.topics.append(topic.id)
            self._rows.costs.append(budget_tokens(record.line))
            self._rows.from_user.append(record.role == "user")
            self._rows.dates.append(_date_words(record.day))
            self._words.add(record.label, record.text)
        self._heads[topic.id] = (self._heads.get(topic.id, (0, ""))[0] + len(refs), refs[-1])

    def _search(self, query: str) -> Hits:
        rows = self._rows
        vector = self._embedder.embed([query])[0]
        cosine = (self._matrix @ vector).astype(float)
        lexical, cover = self._words.scores(query)
        order = np.argsort(rows.numbers, kind="stable")
        costs = np.array(rows.costs, dtype=float)[order]
        messages = Messages(
            costs=costs,
            from_user=np.array(rows.from_user, dtype=float)[order],
            dates=[rows.dates[i] for i in order],
        )
        priority = rank(query, cosine[order], lexical[order], messages)
        best = np.argsort(-priority, kind="stable")
        sure = max(float(cosine.max()) / _SURE_COSINE, cover / _SURE_COVER)
        weights = worth(costs[best], self._budget) * min(1.0, max(0.0, sure))
        ranked = [(int(order[i]), float(w)) for i, w in zip(best, weights, strict=True) if w > 0]
        topics = self._kernels.relevance(vector)
        for row, weight in ranked:
            topic = rows.topics[row]
            topics[topic] = max(topics.get(topic, 0.0), weight)
        return Hits({f"m{rows.numbers[row]}": w for row, w in ranked}, topics)


def mean_of_best(cosines: NDArray[np.float32]) -> float:
    """Mean of the `_NEAREST` highest of some cosines [n]."""
    return float(np.sort(cosines)[-_NEAREST:].mean())


def worth(costs: NDArray[np.float64], budget: int) -> NDArray[np.float64]:
    """Worth of messages by their place in the ranking.

    The scale of priorities says nothing across queries; the place says whether a message would
    fit the budget: 1 for the best, 1/2 where the budget ends, 0 from `_REACH` budgets on.

    Args:
        costs: Tokens of messages [n], the best first.
        budget: Tokens.
    """
    before = np.cumsum(costs) - costs
    weights: NDArray[np.float64] = np.where(
        before < _REACH * budget, budget / (budget + before), 0.0
    )
    return weights


def _date_words(day: str) -> frozenset[str]:
    """Month name, day and year of an ISO day; nothing of anything else."""
    year, _, rest = day.partition("-")
    month, _, date = rest.partition("-")
    if not (year.isdigit() and month.isdigit() and date.isdigit() and 1 <= int(month) <= 12):
        return frozenset()
    return frozenset({calendar.month_name[int(month)].lower(), str(int(date)), year})
