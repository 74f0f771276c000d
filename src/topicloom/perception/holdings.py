"""The messages that a session's topics hold, ready to be ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import budget_tokens
from topicloom.perception.embedder import Vectors
from topicloom.perception.lexical import LexicalIndex
from topicloom.perception.ranking import Messages, words_of_day
from topicloom.perception.vectors import StoredVectors
from topicloom.state.records import Record


@dataclass(slots=True)
class _Row:
    """What is held of a message beside its words and its vector."""

    number: int
    digest: int
    """Stands for what it says, in this process."""
    topic: str | None
    cost: int
    from_user: bool
    speaker: str
    """The speaker's name; "" without one."""
    day: str


class Holdings:
    """Words and vectors of messages, and which topic has each.

    A message that moves to another topic, because one was divided or two were merged, is only
    entered under the other: taking in a long conversation anew takes seconds.
    """

    def __init__(self, vectors: StoredVectors, dimension: int) -> None:
        """Args:
        vectors: Of stored messages.
        dimension: Columns of a vector.
        """
        self._vectors = vectors
        self._rows: list[_Row] = []
        self._places: dict[int, int] = {}
        self.words = LexicalIndex()
        self.matrix: Vectors = np.zeros((0, dimension), dtype=np.float32)
        self.sight = Sight(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def release(self, topics: Iterable[str]) -> None:
        """Take from topics what they have; it waits for being entered under others."""
        gone = set(topics)
        for row in self._rows:
            if row.topic in gone:
                row.topic = None
        self.sight = Sight(self._rows)

    def enter(self, gains: Sequence[tuple[str, Sequence[Record]]]) -> bool:
        """Enter messages under topics.

        Args:
            gains: Topics, and the messages that they gained.

        Returns:
            Whether all fitted: not if one reads otherwise than the one of its number that is
            held, or if some of those that were released are left. What is held is then of no use.
        """
        said = [(topic, record) for topic, records in gains for record in records]
        fresh = [(t, r) for t, r in said if r.seq not in self._places]
        for topic, record in said:
            if (place := self._places.get(record.seq)) is not None:
                row = self._rows[place]
                if row.topic is not None or row.digest != _digest(record):
                    return False
                row.topic = topic
        if fresh:
            self._add(fresh)
        self.sight = Sight(self._rows)
        return all(row.topic is not None for row in self._rows)

    def _add(self, fresh: Sequence[tuple[str, Record]]) -> None:
        vectors = self._vectors.of([record for _, record in fresh])
        self.matrix = np.concatenate([self.matrix, vectors])
        for topic, r in fresh:
            self._places[r.seq] = len(self._rows)
            cost = budget_tokens(r.line)
            row = _Row(r.seq, _digest(r), topic, cost, r.role == "user", r.speaker or "", r.day)
            self._rows.append(row)
            self.words.add(r.label, r.text)


class Sight:
    """What ranking needs of some rows, worked out when it is first asked for."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = rows

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Places of the rows [n] in conversation order. All below is in that order."""
        return np.argsort([row.number for row in self._rows], kind="stable")

    @cached_property
    def _sorted(self) -> list[_Row]:
        return [self._rows[place] for place in self.order]

    @cached_property
    def numbers(self) -> list[int]:
        """Numbers of the messages [n]."""
        return [row.number for row in self._sorted]

    @cached_property
    def topics(self) -> NDArray[np.str_]:
        """Whose they are [n]."""
        return np.array([row.topic or "" for row in self._sorted], dtype=np.str_)

    @cached_property
    def days(self) -> NDArray[np.str_]:
        """The days that they were said on [n], `2026-03-02`."""
        return np.array([row.day for row in self._sorted], dtype=np.str_)

    @cached_property
    def messages(self) -> Messages:
        """The rest."""
        days = {day: words_of_day(day) for day in {row.day for row in self._rows}}
        names = sorted({row.speaker for row in self._rows})
        places = {name: place for place, name in enumerate(names)}
        return Messages(
            costs=np.array([row.cost for row in self._sorted], dtype=float),
            from_user=np.array([row.from_user for row in self._sorted], dtype=float),
            dates=[days[row.day] for row in self._sorted],
            names=names,
            speaker=np.array([places[row.speaker] for row in self._sorted], dtype=np.intp),
        )

    def places(self) -> dict[str, list[int]]:
        """Places of the rows of each topic, as they were added."""
        found: dict[str, list[int]] = {}
        for place, row in enumerate(self._rows):
            found.setdefault(row.topic or "", []).append(place)
        return found


def _digest(record: Record) -> int:
    return hash((record.line, record.role, record.day))
