"""BM25 over the passages of messages, growing message by message."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from sys import intern

import numpy as np
from numpy.typing import NDArray

from topicloom.search.sentences import passages_of
from topicloom.search.words import is_character, telling_words, words_of

K1, B = 1.5, 0.75
"""Saturation and length normalisation of BM25 (Robertson and Zaragoza, 2009)."""
_CHARACTER = 0.5
"""Weight of a CJK character, relative to that of the pairs that it is in."""
_ALIKE = 16
"""Passages of a message whose words are remembered: a long one may be the same again and again."""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The words of messages, as columns [n]."""

    codes: Mapping[str, int]
    """The code of each word."""
    message: NDArray[np.int64]
    """Places of messages, as they were added."""
    word: NDArray[np.int64]
    """Codes of words."""
    times: NDArray[np.float64]
    """The number of times that a passage of the message has the word."""


class LexicalIndex:
    """Postings of passages. Adding takes time by the message, a query by its words."""

    def __init__(self) -> None:
        self._first = array("i")
        self._length = array("i")
        self._times = array("i")
        self._passages = self._words = 0
        self._postings: dict[str, tuple[array[int], array[float]]] = {}
        self._occurrences: Occurrences | None = None

    def __len__(self) -> int:
        return len(self._first)

    def add(self, label: str, text: str, times: int = 1) -> None:
        """Add the next message; its label, the speaker, is found with every passage.

        Args:
            label: What stands before its text.
            text: Its text.
            times: How many messages it stands for that are all the same.
        """
        self._occurrences = None
        self._first.append(len(self._length))
        known_words = lru_cache(_ALIKE)(words_of)
        for passage in passages_of(text):
            counts = Counter(known_words(f"{label}: {passage}"))
            number, length = len(self._length), counts.total()
            self._length.append(length)
            self._times.append(times)
            self._passages += times
            self._words += times * length
            for word, count in counts.items():
                held = self._postings.get(word)
                if held is None:
                    held = self._postings[intern(word)] = array("i"), array("f")
                held[0].append(number)
                held[1].append(count)

    def cut(self, count: int) -> None:
        """Leave the first `count` messages; takes time by the words that there are."""
        if count >= len(self):
            return
        self._occurrences = None
        first = self._first[count]
        for word, (where, times) in list(self._postings.items()):
            left = bisect_left(where, first)
            if left == 0:
                del self._postings[word]
            else:
                del where[left:], times[left:]
        self._passages -= sum(self._times[first:])
        self._words -= sum(map(mul, self._length[first:], self._times[first:]))
        del self._first[count:], self._length[first:], self._times[first:]

    def occurrences(self) -> Occurrences:
        """All words of all messages; worked out anew after messages were added."""
        if self._occurrences is None:
            held = list(self._postings.values())
            passages = np.frombuffer(b"".join([places for places, _ in held]), dtype=np.intc)
            found = np.searchsorted(np.asarray(self._first), passages, side="right") - 1
            self._occurrences = Occurrences(
                codes={word: code for code, word in enumerate(self._postings)},
                message=found.astype(np.int64),
                word=np.repeat(np.arange(len(held)), [len(places) for places, _ in held]),
                times=np.frombuffer(b"".join([times for _, times in held]), dtype=np.float32),
            )
        return self._occurrences

    def scores(self, query: str) -> tuple[NDArray[np.float64], float]:
        """Score every message by its best passage for a query.

        Returns:
            Scores [messages], at least 0; and the share of the query's weight (inverse document
            frequencies) that the best message holds, 0 to 1.
        """
        if not self._first:
            return np.zeros(0), 0.0
        length = np.asarray(self._length)
        usual = max(self._words / self._passages, 1e-9)
        score, held = np.zeros(len(length)), np.zeros(len(length))
        asked, telling = 0.0, telling_words(query)
        for word, times_asked in Counter(words_of(query)).items():
            weight = times_asked * self._weigh(word)
            asked += weight * (word in telling)
            if word in self._postings:
                where, times = (np.asarray(a) for a in self._postings[word])
                norm = K1 * (1 - B + B * length[where] / usual)
                score[where] += weight * times * (K1 + 1) / (times + norm)
                held[where] += weight * (word in telling)
        best = np.maximum.reduceat(score, np.asarray(self._first))
        return best, float(held.max()) / asked if asked else 0.0

    def _weigh(self, word: str) -> float:
        """The inverse document frequency of a word; half of it for a character among pairs."""
        times, found = np.asarray(self._times), 0
        if word in self._postings:
            found = int(times[np.asarray(self._postings[word][0])].sum())
        weight = math.log(1 + (self._passages - found + 0.5) / (found + 0.5))
        return _CHARACTER * weight if is_character(word) else weight
