"""The messages that a session's topics hold, ready to be ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import count_budget_tokens
from topicloom.prompts.loader import load_cues
from topicloom.prompts.wording import strip_own_replies
from topicloom.search.bm25 import LexicalIndex
from topicloom.search.embedder import Vectors
from topicloom.search.message_columns import (
    KNOWN,
    LOOSE_TOPIC,
    Codes,
    MessageColumns,
    VectorRows,
    read_seconds,
)
from topicloom.search.message_view import MessageView
from topicloom.search.vectors import GrowingRows, Place, StoredVectors
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.topic_ranges import TopicRanges
from topicloom.state.topics import Topic

_ROW = np.dtype(
    [
        ("number", np.int64),
        ("topic", np.int32),  # its place among the topics' names; the same below
        ("day", np.int32),
        ("speaker", np.int32),
        ("cost", np.float64),
        ("from_user", np.float64),
        ("seconds", np.float64),  # since the epoch; NaN if it has no time
        ("opens", np.bool_),  # a topic began with it, as it came
        ("empty", np.bool_),  # a reply that no model wrote, or removed
        ("standing", np.bool_),  # the user asks for something that holds from then on
    ]
)
"""The columns of a message, apart from its words and its vector."""
ROLES = ("user", "assistant")
"""Voices of messages that name no speaker."""


class MessageTable:
    """Words and vectors of messages in the order of the conversation, and which topic has each.

    A message that moves to another topic, because one was divided or two were merged, is only
    entered under the other: taking in a long conversation anew takes seconds.
    """

    def __init__(self, vectors: StoredVectors, dimension: int) -> None:
        self._vectors = vectors
        self._matrix = GrowingRows((dimension,), np.float32)
        self._sums = GrowingRows((dimension,), np.float64)
        self._rows = GrowingRows((), _ROW)
        self._lost: set[int] = set()
        # "" is the first of each: no topic, no day, no name.
        self._topics, self._days, self._speakers = (Codes({"": 0}) for _ in range(3))
        self.words = LexicalIndex()
        self.view = self._make_view()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def matrix(self) -> Vectors:
        """Vectors of the messages [n, d], as they were added."""
        return self._matrix.all

    @property
    def mean(self) -> Vectors:
        """Mean vector of the messages [d]; there has to be one."""
        return np.asarray(self._sums.all.sum(axis=0) / len(self), dtype=np.float32)

    def read_columns(
        self, topics: Sequence[Topic], voices: dict[str, int], newest: int
    ) -> MessageColumns:
        """Messages of topics, as runs are cut from them.

        Of each topic the `newest` are given. The codes of new voices are added; codes of topics are
        those of `code_of`.
        """
        every = self._rows.all
        codes = every["topic"].astype(np.int64)
        loose = self._topics.of(t.id for t in topics if t.loose)
        kept = np.isin(codes, self._topics.of(t.id for t in topics))
        kept &= count_later(codes) < newest
        chosen, words = np.flatnonzero(kept), self.words.occurrences()
        place = np.full(len(every), -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        at = place[words.message]
        rows, topic = every[chosen], codes[kept]
        topic[np.isin(topic, loose)] = LOOSE_TOPIC
        from_user = rows["from_user"] > 0
        names = np.array([voices[name or ROLES[0]] for name in self._speakers])
        voice = np.where(from_user | (rows["speaker"] > 0), names[rows["speaker"]], -1)
        voice[voice < 0] = voices[ROLES[1]]
        begins = from_user.copy()
        begins[:1] = True
        return MessageColumns(
            number=rows["number"],
            begins=begins,
            topic=topic,
            seconds=rows["seconds"],
            voice=voice,
            continues=np.where(rows["opens"], -KNOWN, KNOWN),
            vectors=VectorRows((self.matrix,), chosen),
            word_at=at[at >= 0],
            word=words.word[at >= 0],
            times=words.times[at >= 0],
        )

    def code_of(self, topic: str) -> int:
        """The code of a topic in `read_columns`; -1 for one that has no messages."""
        return self._topics.get(topic, -1)

    def cut(self, count: int) -> None:
        self._lost |= set(self._rows.all["topic"][count:].tolist())
        for held in (self._rows, self._matrix, self.words):
            held.cut(count)

    def add(self, messages: Sequence[StoredMessage], places: Sequence[Place]) -> None:
        """Add messages, in the order of the conversation, which are stored at their places."""
        self._matrix.extend(self._vectors.of(messages, places, wait=False))
        self._rows.extend(np.array([self._row(message) for message in messages], dtype=_ROW))
        for message in messages:
            self.words.add(message.label, message.text)

    def assign(self, topics: Iterable[Topic], ranges: TopicRanges) -> bool:
        """Enter all messages under the topics that have them now; True if anything changed.

        Args:
            topics: The topics with messages, in the order in which they get codes.
            ranges: Which of them has which messages.
        """
        codes = {topic.id: self._topics[topic.id] for topic in topics}
        rows = self._rows.all
        owners = np.array([codes.get(owner, 0) for owner in ranges.owners], dtype=np.int32)
        now = owners[np.searchsorted(ranges.starts, rows["number"], "right") - 1]
        moved = now != rows["topic"]
        changed = self._lost.union(rows["topic"][moved].tolist(), now[moved].tolist()) - {0}
        rows["topic"], self._lost = now, set()
        dimension = self._matrix.all.shape[1]
        self._sums.extend(np.zeros((len(self._topics) - len(self._sums), dimension)))
        for topic in changed:
            self._sums.all[topic] = self._matrix.all[now == topic].sum(axis=0, dtype=np.float64)
        self.view = self._make_view()
        return bool(changed)

    def sum_of(self, topic: str) -> NDArray[np.float64]:
        """Sum of the vectors of a topic's messages [d]."""
        return np.asarray(self._sums.all[self._topics[topic]])

    def _row(self, message: StoredMessage) -> tuple[Any, ...]:
        """A row of no topic yet."""
        day, speaker = self._days[message.day], self._speakers[message.speaker or ""]
        cost = count_budget_tokens(message.line)
        from_user = message.role == "user"
        unsaid = not from_user and not strip_own_replies(message.text).strip()
        empty = unsaid or message.text == REMOVED
        seconds, opens = read_seconds(message), message.opens
        begun = (message.seq, 0, day, speaker, cost, from_user)
        standing = from_user and load_cues("standing").found_in(message.as_query)
        return *begun, seconds, opens, empty, standing

    def _make_view(self) -> MessageView:
        names = map(list, (self._topics, self._days, self._speakers))
        return MessageView(self._rows.all, self._sums.all, *names)


def count_later(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of times that each of some codes [n] comes again later [n]."""
    order = np.argsort(codes[::-1], kind="stable")
    ranked = codes[::-1][order]
    begins = np.flatnonzero(np.diff(ranked, prepend=-1))
    lengths = np.diff(np.append(begins, len(ranked)))
    later = np.empty(len(codes), dtype=np.int64)
    later[order] = np.arange(len(codes)) - np.repeat(begins, lengths)
    return later[::-1]
