"""What is kept of topics to compare a message with, side by side: one array for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.index.embedder import Vectors
from topicloom.perception.rejoin.lexicon import COLUMNS, Columns, unit
from topicloom.perception.rejoin.signs import Signs

SUM, FIRST, THREE, KEPT = 0, 1, 2, 3
"""Rows of a trail: direction of all, the first, direction of the last three; then the newest."""
NEWEST = 12
"""Newest messages that are kept one by one."""

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_ARRAYS = (
    "sizes", "firsts", "numbers", "hours", "moods", "voices", "openers",
    "vectors", "vector_totals", "gists", "gist_totals", "words",
)  # fmt: skip


class Traces:
    """Topics, each in a place of its own; places are used again. Room doubles when it is full."""

    def __init__(self, room: int = 1) -> None:
        """Make room for some topics, at least one."""
        self.sizes: Places = np.zeros(room, dtype=np.int64)
        """Messages of each topic [room]."""
        self.firsts: Places = np.zeros(room, dtype=np.int64)
        """Number of the first message of each in the conversation [room]."""
        self.numbers: Places = np.zeros(room, dtype=np.int64)
        """Number of the newest message of each [room]."""
        self.hours: Floats = np.full(room, np.nan)
        """When the newest message of each was said [room]; nan where that is not known."""
        self.moods: NDArray[np.bool_] = np.zeros((room, 2), dtype=np.bool_)
        """Whether the newest message of each asks something, and whether it closes [room, 2]."""
        self.voices: NDArray[np.uint32] = np.zeros((room, NEWEST), dtype=np.uint32)
        """Who said each kept message, in the order of the rows [room, NEWEST], as `Signs.code`."""
        self.openers: NDArray[np.uint32] = np.zeros(room, dtype=np.uint32)
        """Who opened each topic [room]."""
        self.vectors: Vectors = np.zeros((room, KEPT + NEWEST, 0), dtype=np.float32)
        """By meaning, unit rows [room, KEPT + NEWEST, d]; zero where nothing is known."""
        self.vector_totals: Vectors = np.zeros((room, 0), dtype=np.float32)
        """Sums of all vectors of each topic [room, d]."""
        self.gists: Vectors = np.zeros((room, KEPT + NEWEST, 0), dtype=np.float32)
        """By subject, as the lexicon has it [room, KEPT + NEWEST, k]."""
        self.gist_totals: Vectors = np.zeros((room, 0), dtype=np.float32)
        """Sums of all gists of each topic [room, k]."""
        self.words: NDArray[np.uint8] = np.zeros((room, COLUMNS), dtype=np.uint8)
        """Messages of each topic that hold each word [room, COLUMNS], up to 255."""
        self._free = list(range(room))[::-1]

    @property
    def room(self) -> int:
        """Topics that there is room for."""
        return len(self.sizes)

    def take(self) -> int:
        """A place for one more topic."""
        if not self._free:
            room = self.room
            for name in _ARRAYS:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, _blank(array)]))
            self._free = list(range(room, 2 * room))[::-1]
        return self._free.pop()

    def release(self, place: int) -> None:
        """Forget the topic at a place, which another may take."""
        for name in _ARRAYS:
            array = getattr(self, name)
            array[place] = _blank(array[place : place + 1])[0]
        self._free.append(place)

    def add(self, place: int, signs: Signs, number: int) -> None:
        """Take a message, of this number in the conversation, into a topic."""
        if not self.vectors.shape[2]:
            self._widen(len(signs.vector), len(signs.gist))
        size = int(self.sizes[place])
        _extend(self.vectors[place], self.vector_totals[place], signs.vector, size)
        _extend(self.gists[place], self.gist_totals[place], signs.gist, size)
        self.voices[place, size % NEWEST] = signs.code
        seen = self.words[place, signs.words]
        self.words[place, signs.words] = seen + (seen < 255)
        if size == 0:
            self.firsts[place], self.openers[place] = number, signs.code
        self.sizes[place], self.numbers[place] = size + 1, number
        self.moods[place] = signs.question, signs.closes
        self.hours[place] = np.nan if signs.hours is None else signs.hours

    def adopt(self, other: Traces, at: int) -> int:
        """Take in what lies at a place of another; returns its place here."""
        if not self.vectors.shape[2]:
            self._widen(other.vectors.shape[2], other.gists.shape[2])
        place = self.take()
        for name in _ARRAYS:
            getattr(self, name)[place] = getattr(other, name)[at]
        return place

    def cosines(self, rows: Vectors, vector: Vectors, places: Places) -> Floats:
        """Cosines [n, KEPT + NEWEST] of a vector [d] to `vectors` or `gists` of topics [n]."""
        _, height, dimension = rows.shape
        used = int(places.max()) + 1
        if used > 2 * len(places):
            return (rows[places].reshape(-1, dimension) @ vector).reshape(-1, height).astype(float)
        # One product over all that lies together is cheaper than to copy some of it out first.
        found = rows[:used].reshape(-1, dimension) @ vector
        return np.asarray(found.reshape(-1, height)[places], dtype=np.float64)

    def speakers(self, places: Places) -> NDArray[np.uint32]:
        """Who said the newest message of topics [n]."""
        return self.voices[places, (self.sizes[places] - 1) % NEWEST]

    def counts(self, words: Columns, places: Places) -> Floats:
        """Messages of topics [n] that hold each of some words [n, w]."""
        return self.words[places[:, None], words].astype(np.float64)

    def _widen(self, dimension: int, subjects: int) -> None:
        room = self.room
        self.vectors = np.zeros((room, KEPT + NEWEST, dimension), dtype=np.float32)
        self.vector_totals = np.zeros((room, dimension), dtype=np.float32)
        self.gists = np.zeros((room, KEPT + NEWEST, subjects), dtype=np.float32)
        self.gist_totals = np.zeros((room, subjects), dtype=np.float32)


def row_of(place: Any) -> Any:
    """Row of a trail that holds message number `place` of a topic, while it is kept."""
    return KEPT + place % NEWEST


def _extend(rows: Vectors, total: Vectors, vector: Vectors, place: int) -> None:
    """Take the vector [d] of message number `place` into a topic's rows."""
    total += vector
    rows[SUM] = unit(total)
    if place == 0:
        rows[FIRST] = vector
    rows[row_of(place)] = vector
    recent = [row_of(back) for back in range(max(0, place - 2), place + 1)]
    rows[THREE] = unit(rows[recent].sum(axis=0))


def _blank(array: NDArray[Any]) -> NDArray[Any]:
    """Nothing known, in the form of an array."""
    return np.full_like(array, np.nan if array.dtype.kind == "f" and array.ndim == 1 else 0)
