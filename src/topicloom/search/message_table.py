"""The messages that a session's topics hold, ready to be ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import count_budget_tokens
from topicloom.prompts.loader import load_cues
from topicloom.prompts.wording import strip_own_replies
from topicloom.search.bm25 import LexicalIndex
from topicloom.search.embedder import Vectors
from topicloom.search.encoders import is_chinese
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
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

_ROW = np.dtype(
    [
        ("number", np.int64),
        ("digest", np.int64),  # of its content, in this process
        ("topic", np.int32),  # its place among the topics' names; the same below
        ("day", np.int32),
        ("speaker", np.int32),
        ("cost", np.float64),
        ("from_user", np.float64),
        ("seconds", np.float64),  # since the epoch; NaN if it has no time
        ("opens", np.bool_),  # a topic began with it, as it came
        ("empty", np.bool_),  # a reply that no model wrote
        ("chinese", np.bool_),
        ("standing", np.bool_),  # the user asks for something that holds from then on
    ]
)
"""The columns of a message, apart from its words and its vector."""
ROLES = ("user", "assistant")
"""Voices of messages that name no speaker."""


class Gain(NamedTuple):
    """Messages that a topic gained."""

    topic: str
    messages: Sequence[StoredMessage]
    places: Sequence[Place]
    """Where each is stored."""


class MessageTable:
    """Words and vectors of messages, and which topic has each.

    A message that moves to another topic, because one was divided or two were merged, is only
    entered under the other: taking in a long conversation anew takes seconds.
    """

    def __init__(self, vectors: StoredVectors, dimension: int) -> None:
        self._vectors = vectors
        self._matrix = GrowingRows((dimension,), np.float32)
        self._sums = GrowingRows((dimension,), np.float64)
        self._rows = GrowingRows((), _ROW)
        self._places: dict[int, int] = {}
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
        """Messages of topics in conversation order, as runs are cut from them.

        Of each topic the `newest` are given. The codes of new voices are added; codes of topics are
        those of `code_of`.
        """
        order, every = self.view.order, self._rows.all
        codes = every["topic"][order].astype(np.int64)
        loose = self._topics.of(t.id for t in topics if t.loose)
        kept = np.isin(codes, self._topics.of(t.id for t in topics))
        kept &= count_later(codes) < newest
        chosen, words = order[kept], self.words.occurrences()
        place = np.full(len(order), -1, dtype=np.int64)
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

    def release(self, topics: Iterable[str]) -> None:
        """Take the messages of some topics away; they wait to be entered under others."""
        gone = self._topics.of(topics)
        rows = self._rows.all
        rows["topic"][np.isin(rows["topic"], gone)] = 0
        self._sums.all[[place for place in gone if place < len(self._sums)]] = 0
        self.view = self._make_view()

    def enter(self, gains: Sequence[Gain]) -> bool:
        """Enter the messages that topics gained.

        Returns:
            True if all fitted. They don't if messages that were released are left, or have changed,
            unless they are those that were added last. The table is then of no use.
        """
        gained = [(self._topics[gain.topic], m) for gain in gains for m in gain.messages]
        if not self._forget_but([message for _, message in gained]):
            return False
        placed = [pair for g in gains for pair in zip(g.messages, g.places, strict=True)]
        self._add([pair for pair in placed if pair[0].seq not in self._places])
        rows, vectors = self._rows.all, self._matrix.all
        for topic, message in gained:
            place = self._places[message.seq]
            if rows["topic"][place]:
                return False
            rows["topic"][place] = topic
            self._sums.all[topic] += vectors[place]
        self.view = self._make_view()
        return True

    def _forget_but(self, messages: Sequence[StoredMessage]) -> bool:
        """Forget what waits and is not among some messages, where it is what was added last.

        So it is where a conversation went back to an older checkpoint.
        """
        rows = self._rows.all
        stale = rows["topic"] == 0
        for message in messages:
            place = self._places.get(message.seq)
            if place is not None and rows["digest"][place] == _digest(message):
                stale[place] = False
        count = len(rows) - int(stale.sum())
        if stale[:count].any():
            return False
        if count < len(rows):
            for number in rows["number"][count:].tolist():
                del self._places[number]
            self._rows.cut(count)
            self._matrix.cut(count)
            self.words.cut(count)
        return True

    def sum_of(self, topic: str) -> NDArray[np.float64]:
        """Sum of the vectors of a topic's messages [d]."""
        place = self.code_of(topic)
        if 0 <= place < len(self._sums):
            return np.asarray(self._sums.all[place])
        return np.zeros(self._matrix.all.shape[1])

    def _add(self, placed: Sequence[tuple[StoredMessage, Place]]) -> None:
        missing = len(self._topics) - len(self._sums)
        self._sums.extend(np.zeros((missing, self._matrix.all.shape[1])))
        if not placed:
            return
        fresh, places = zip(*placed, strict=True)
        self._matrix.extend(self._vectors.of(fresh, places, wait=False))
        self._places |= {r.seq: place for place, r in enumerate(fresh, start=len(self._rows))}
        self._rows.extend(np.array([self._row(message) for message in fresh], dtype=_ROW))
        for message in fresh:
            self.words.add(message.label, message.text)

    def _row(self, message: StoredMessage) -> tuple[Any, ...]:
        """A row of no topic yet."""
        day, speaker = self._days[message.day], self._speakers[message.speaker or ""]
        cost = count_budget_tokens(message.line)
        from_user = message.role == "user"
        empty = not from_user and not strip_own_replies(message.text).strip()
        chinese = is_chinese(message.text)
        seconds, opens = read_seconds(message), message.opens
        begun = (message.seq, _digest(message), 0, day, speaker, cost, from_user)
        standing = from_user and load_cues("standing").found_in(message.as_query)
        return *begun, seconds, opens, empty, chinese, standing

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


def _digest(message: StoredMessage) -> int:
    return hash((message.line, message.role, message.day))
