"""Excerpts: the sentences of a long text that say most of a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.search.bm25 import LexicalIndex
from topicloom.search.sentences import sentences_of

_NEIGHBOUR = 0.3
"""Share of what a sentence says of a query that counts for its neighbours."""
_TELLING = 0.2
"""Share of the best sentence's score from which others are part of an excerpt: its neighbours,
even without a word of the query."""
_MISSED = 64
"""Sentences that do not fit, after which no other is tried: a text may have half a million."""
_GAP = "\n[…]\n"
"""The text between two stretches."""


@dataclass(frozen=True, slots=True)
class RankedSentences:
    """The sentences and lines of a text, ranked by what they say of a query."""

    text: str
    spans: Sequence[tuple[int, int]]
    """Where they begin and end [n], in their order."""
    places: Sequence[int]
    """Their places in that order [n], the best first."""
    scores: NDArray[np.float64]
    """By place [n]; neighbours count a little."""

    @classmethod
    def of(cls, text: str, query: str) -> RankedSentences:
        """Rank the sentences of a text: linear work, to be done once for a query."""
        index, spans = LexicalIndex(), sentences_of(text)
        if len(spans) < 2:
            return cls(text, spans, range(len(spans)), np.zeros(len(spans)))
        sentences = [text[begin:end] for begin, end in spans]
        known = Counter(sentences)
        for sentence, times in known.items():
            index.add("", sentence, times)
        scored = dict(zip(known, index.scores(query)[0], strict=True))
        own = np.array([scored[sentence] for sentence in sentences])
        scores = np.convolve(own, (_NEIGHBOUR, 1, _NEIGHBOUR))[1:-1]
        places: list[int] = np.argsort(-scores, kind="stable").tolist()
        return cls(text, spans, places, scores)

    @property
    def best(self) -> int:
        """Where the sentence begins that says most."""
        return self.spans[self.places[0]][0] if self.places else 0

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
            price = count(self.text[slice(*self.spans[place])] + _GAP)
            if price <= room:
                room -= price
                chosen.add(place)
            elif not chosen or missed == _MISSED:
                break  # without the best the others say little
            else:
                missed += 1
        stretches = list[tuple[int, int]]()
        for place in sorted(chosen):
            begin, end = self.spans[place]
            stretches.append((stretches.pop()[0] if place - 1 in chosen else begin, end))
        return tuple(stretches)
