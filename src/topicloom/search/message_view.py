"""The messages of a session's topics in conversation order, as ranking looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Vectors
from topicloom.search.ranking import Messages


class MessageView:
    """The rows of the table, each column worked out on first use."""

    def __init__(
        self,
        rows: NDArray[Any],
        sums: NDArray[np.float64],
        topics: list[str],
        days: list[str],
        speakers: list[str],
    ) -> None:
        self._rows = rows
        self._sums = sums
        self._topics, self._days, self._speakers = topics, days, speakers

    @property
    def numbers(self) -> NDArray[np.int64]:
        return np.asarray(self._rows["number"])

    @cached_property
    def messages(self) -> Messages:
        """The columns that ranking takes."""
        rows = self._rows
        return Messages(
            costs=rows["cost"],
            from_user=rows["from_user"],
            names=self._speakers,
            speaker=rows["speaker"],
            topics=rows["topic"],
            opens=rows["opens"] & (rows["from_user"] > 0),
        )

    @cached_property
    def means(self) -> Vectors:
        """Mean vector of the messages of each topic [k, d]; zero for one that has none."""
        counts = np.bincount(self.topics, minlength=len(self._topics))
        return np.asarray(self._sums / np.maximum(counts, 1)[:, None], dtype=np.float32)

    @property
    def opens(self) -> NDArray[np.bool_]:
        """True for those with which a topic begins [n]."""
        return np.asarray(self._rows["opens"])

    @property
    def standing(self) -> NDArray[np.bool_]:
        """True for those with which the user asks for something from then on [n]."""
        return np.asarray(self._rows["standing"])

    def of_days(self, first: str, last: str) -> NDArray[np.bool_]:
        """True for messages of the days from one to another, `2026-03-02`, both included [n]."""
        return self._where("day", [first <= day <= last for day in self._days])

    @property
    def empty(self) -> NDArray[np.bool_]:
        """True for replies that no model wrote, and for what was removed: nothing to quote [n]."""
        return np.asarray(self._rows["empty"])

    def held_by(self, topics: Iterable[str]) -> NDArray[np.bool_]:
        """True for those that some topics have [n]."""
        chosen = set(topics)
        return self._where("topic", [topic in chosen for topic in self._topics])

    @property
    def topics(self) -> NDArray[np.int32]:
        """The number of each one's topic [n]."""
        return np.asarray(self._rows["topic"])

    def numbers_of(self, topics: Iterable[str]) -> list[int]:
        """The numbers of those of some topics that have had messages."""
        chosen = set(topics)
        return [number for number, topic in enumerate(self._topics) if topic in chosen]

    def name(self, number: int) -> str:
        return self._topics[number]

    def topic(self, place: int) -> str:
        return self.name(int(self.topics[place]))

    def _where(self, column: str, chosen: Sequence[bool]) -> NDArray[np.bool_]:
        return np.asarray(np.array(chosen)[self._rows[column]])
