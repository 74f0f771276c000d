"""Plain BM25 over messages, growing message by message.

`topicloom.index.bm25` is more than that: it takes endings off, leaves function words out and scores
by the best passage. A baseline should be what others would use.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from topicloom.state.language import CJK_RUN

K1, B = 1.5, 0.75
"""Saturation and length normalisation (Robertson and Zaragoza, 2009)."""

Words = Callable[[str], list[str]]

_WORD = re.compile(r"\w+")


def plain_words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; of CJK runs, characters and pairs."""
    spaced = CJK_RUN.sub(lambda run: f" {' '.join(_grams(run[0]))} ", text.lower())
    return _WORD.findall(spaced)


def _grams(run: str) -> Sequence[str]:
    return [*run, *(run[i : i + 2] for i in range(len(run) - 1))]


class Bm25:
    """Postings of texts: a text once added stays as it is."""

    def __init__(self, words: Words = plain_words) -> None:
        """An empty index, with what cuts texts and queries into words."""
        self._words = words
        self._lengths = array("i")
        self._postings: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, text: str) -> None:
        """Add the next text."""
        words = self._words(text)
        for word, count in Counter(words).items():
            places, counts = self._postings.setdefault(word, (array("i"), array("f")))
            places.append(len(self._lengths))
            counts.append(count)
        self._lengths.append(len(words))

    def scores(self, query: str) -> NDArray[np.float64]:
        """Scores [n] of all texts, in the order they were added; at least 0."""
        lengths = np.array(self._lengths, dtype=float)
        found = np.zeros(len(lengths))
        if not len(lengths):
            return found
        norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
        for word, times in Counter(self._words(query)).items():
            if word in self._postings:
                places, counts = (np.array(a) for a in self._postings[word])
                holding = len(places)
                idf = math.log(1 + (len(lengths) - holding + 0.5) / (holding + 0.5))
                found[places] += times * idf * counts * (K1 + 1) / (counts + norm[places])
        return found
