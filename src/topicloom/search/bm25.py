"""BM25 over the passages of messages, growing message by message."""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nlargest
from itertools import accumulate, compress
from operator import add, mul
from sys import intern

import numpy as np
from numpy.typing import NDArray

from topicloom.search.encoders import is_chinese
from topicloom.search.words import count_words, is_character, telling_words, words_of

K1, B = 1.5, 0.75
"""Saturation and length normalisation of BM25 (Robertson and Zaragoza, 2009)."""
_CHARACTER = 0.5
"""Weight of a CJK character, relative to that of the pairs that it is in."""
_ALIKE = 16
"""Passages of a message whose words are remembered: a long one may be the same again and again."""
_COMMON, _ECHOED = 0.05, 20
"""Share of the passages past which a word tells nothing, and words of a second look at most."""


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
    """How often a passage of the message has the word."""


class LexicalIndex:
    """Postings of passages. Adding takes time by the message, a query by its words."""

    def __init__(self) -> None:
        self._first = array("i")
        self._length = array("i")
        self._times = array("i")
        self._passages = self._words = 0
        self._distinct: list[tuple[str, ...]] = []
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
        count_known = lru_cache(_ALIKE)(count_words)
        for passage in passages_of(text, _passage_of(text)):
            counts = count_known(f"{label}: {passage}")
            number, length = len(self._length), counts.total()
            self._length.append(length)
            self._times.append(times)
            self._passages += times
            self._words += times * length
            self._distinct.append(tuple(map(intern, counts)))
            for word, count in zip(self._distinct[-1], counts.values(), strict=True):
                held = self._postings.get(word)
                if held is None:
                    held = self._postings[word] = array("i"), array("f")
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
        del self._first[count:], self._length[first:], self._times[first:], self._distinct[first:]

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
            weight = times_asked * self._worth(word)
            asked += weight * (word in telling)
            if word in self._postings:
                where, times = (np.asarray(a) for a in self._postings[word])
                norm = K1 * (1 - B + B * length[where] / usual)
                score[where] += weight * times * (K1 + 1) / (times + norm)
                held[where] += weight * (word in telling)
        best = np.maximum.reduceat(score, np.asarray(self._first))
        return best, float(held.max()) / asked if asked else 0.0

    def echoes(self, best: Sequence[int], query: str) -> NDArray[np.float64]:
        """Score every message [n] by the telling words that the `best` share, beyond the query's.

        So a second look finds the people and things that what was found first is about. Words of
        more than one of these messages count, by how many, and by how rare they are.
        """
        ends = np.append(self._first[1:], len(self._distinct))
        words_of_best = (
            frozenset[str]().union(*self._distinct[self._first[i] : ends[i]]) for i in best
        )
        shared = Counter(word for words in words_of_best for word in words)
        most = _COMMON * len(self._distinct)
        worth = {
            word: count * self._worth(word)
            for word, count in shared.items()
            if count > 1 and len(self._postings[word][0]) <= most
        }
        for word in words_of(query):
            worth.pop(word, None)
        score = np.zeros(len(self._distinct))
        for word in nlargest(_ECHOED, worth, key=lambda word: (worth[word], word)):
            score[np.asarray(self._postings[word][0])] += worth[word]
        return np.maximum.reduceat(score, np.asarray(self._first))

    def _worth(self, word: str) -> float:
        """The inverse document frequency of a word; half of it for a character among pairs."""
        times, found = np.asarray(self._times), 0
        if word in self._postings:
            found = int(times[np.asarray(self._postings[word][0])].sum())
        worth = math.log(1 + (self._passages - found + 0.5) / (found + 0.5))
        return _CHARACTER * worth if is_character(word) else worth


PASSAGE, _PASSAGE_ZH = 400, 250
"""Characters of a passage, and of one in Chinese, in which fewer say as much."""
_NEIGHBOUR = 0.3
"""Share of what a sentence says of a query that counts for its neighbours."""
_TELLING = 0.2
"""Share of the best sentence's score from which others are part of an excerpt: its neighbours,
even without a word of the query."""
_MISSED = 64
"""Sentences that do not fit, after which no other is tried: a text may have half a million."""
_GAP, _MARK = 3, 3
"""Tokens of what stands between two stretches, and characters of a number with its full stop."""
_CUT = re.compile(r"((?<=[.!?])\s+|\n(?:[^\S\n]*+\n)*+|(?<=[。！？])(?![。！？]))")
"""Ends of sentences and of lines, as a group; of blank lines in a row, one."""


def _passage_of(text: str) -> int:
    chinese = len(text) > _PASSAGE_ZH and is_chinese(text)
    return _PASSAGE_ZH if chinese else PASSAGE


def passages_of(text: str, size: int = PASSAGE) -> list[str]:
    """Cut a text at its sentences and lines into at least one passage of about `size` characters.

    A text up to half as long again stays whole.
    """
    if len(text) <= size * 3 // 2:
        return [text]
    cut = [text[begin:end].strip() for begin, end in zip(*_cut_sentences(text, size), strict=True)]
    pieces = [*filter(None, cut)]
    # Where each ends if all are joined, with the break behind it.
    ends = list(map(add, accumulate(map(len, pieces)), range(1, len(pieces) + 1)))
    found, first, before = list[str](), 0, 0
    while first < len(pieces):
        # One that is too long by itself stands alone.
        stop = max(first + 1, bisect_right(ends, before + size + 2, first))
        found.append("\n".join(pieces[first:stop]))
        first, before = stop, ends[stop - 1]
    return found or [""]


@dataclass(frozen=True, slots=True)
class RankedSentences:
    """The sentences and lines of a text, ranked by what they say of a query."""

    text: str
    begins: Sequence[int]
    """Where they begin [n], in their order."""
    ends: Sequence[int]
    """Where they end [n]."""
    places: Sequence[int]
    """Their places in that order [n], the best first."""
    scores: NDArray[np.float64]
    """By place [n]; neighbours count a little."""

    @classmethod
    def of(cls, text: str, query: str) -> RankedSentences:
        """Rank the sentences of a text: linear work, to be done once for a query."""
        index, (begins, ends) = LexicalIndex(), _find_sentences(text, PASSAGE)
        sentences = list(map(text.__getitem__, map(slice, begins, ends)))
        known = Counter(sentences)
        for sentence, times in known.items():
            index.add("", sentence, times)
        scored = dict(zip(known, index.scores(query)[0], strict=True))
        own = np.array([scored[sentence] for sentence in sentences])
        scores = np.convolve(own, (_NEIGHBOUR, 1, _NEIGHBOUR))[1:-1] if len(own) else own
        places: list[int] = np.argsort(-scores, kind="stable").tolist()
        return cls(text, begins, ends, places, scores)

    @property
    def best(self) -> int:
        """Where the sentence begins that says most."""
        return self.begins[self.places[0]] if self.places else 0

    def select(self, room: float, count: Callable[[str], int]) -> tuple[tuple[int, int], ...]:
        """Those that say most, as many as `room` tokens hold.

        One that says little compared with the best is left out, even if there is room.

        Returns:
            Where they begin and end in the text, in their order; neighbours are one stretch.
        """
        chosen, missed = set[int](), 0
        for place in self.places:
            if self.scores[place] < _TELLING * self.scores[self.places[0]]:
                break
            price = count(self.text[self.begins[place] : self.ends[place]]) + _GAP
            if price <= room:
                room -= price
                chosen.add(place)
            elif not chosen or missed == _MISSED:
                break  # without the best the others say little
            else:
                missed += 1
        stretches = list[tuple[int, int]]()
        for place in sorted(chosen):
            begin = stretches.pop()[0] if place - 1 in chosen else self.begins[place]
            stretches.append((begin, self.ends[place]))
        return tuple(stretches)


def sentences_of(text: str, size: int = PASSAGE) -> list[tuple[int, int]]:
    """Where the sentences and lines of a text begin and end; the longest are cut into parts.

    These have `size` characters. A number or a letter with a full stop goes with what it counts.
    """
    return list(zip(*_find_sentences(text, size), strict=True))


def _find_sentences(text: str, size: int) -> tuple[list[int], list[int]]:
    """Where the sentences begin, and where they end [n], without those that are blank."""
    begins, ends = _cut_sentences(text, size)
    said = [bool(text[begin:end].strip()) for begin, end in zip(begins, ends, strict=True)]
    return list(compress(begins, said)), list(compress(ends, said))


def _cut_sentences(text: str, size: int) -> tuple[list[int], list[int]]:
    """Where they begin, and where they end [n], those that are blank as well.

    A text may have hundreds of thousands: pairs of them would keep the garbage collector busy.
    """
    begins, ends = list[int](), list[int]()
    begin, length = 0, len(text)
    pieces = [*_CUT.split(text), ""]  # sentences, each with the gap behind it
    places = list(accumulate(map(len, pieces)))
    for end, after, gap in zip(places[::2], places[1::2], pieces[1::2], strict=True):
        if end - begin <= _MARK and after < length and "\n" not in gap:
            continue
        if end - begin > 2 * size:
            parts = range(begin, end, size)
            begins += parts
            ends += [*parts[1:], end]
        else:
            begins.append(begin)
            ends.append(end)
        begin = after
    return begins, ends
