"""Lore: the application's documents, found by meaning and words together, and by their names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from topicloom.domain.curation import Candidate
from topicloom.domain.sources import SURE_COVER, add_keywords, make_preview, scale_scores
from topicloom.index.ranking import Floats
from topicloom.index.words import NameFinder
from topicloom.state.plan import SearchIntent

_SURE_COSINE = 0.45
"""Similarity from which something was found for sure."""
_UNSURE = 0.05
"""What is left where there is nothing but chance: enough to keep the order."""
_CHANCE, _CHANCE_GROWS = 0.1, 0.02
"""Similarity of the nearest of n passages to a query that has nothing to do with any of them, and
how it grows with log n: .14 of 8 passages, .24 of 1,000 (small talk against two sets of lore)."""
_SEEDS = 10
"""Best passages whose text is looked through for the names of others."""
_NAMED = 0.2
"""Share of the candidates that may be there only because a seed names them."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A document, or a part of a long one."""

    id: str
    title: str
    text: str
    tags: tuple[str, ...] = ()

    @property
    def headed(self) -> str:
        """The text under its title, as it is searched."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class LoreMatches:
    """What a query finds among passages; arrays are [n]."""

    passages: Sequence[Passage]
    names: NameFinder
    """Their titles."""
    dense: Floats
    """How near each is in meaning, on any scale."""
    words: Floats
    """BM25 of each."""
    cover: float
    """Share of the query's words that the best holds, 0 to 1."""
    cosine: float | None = None
    """Cosine of the nearest; None where the store does not tell."""

    @property
    def sure(self) -> float:
        """How sure it is that anything was found, 0 to 1.

        Words alone say little, a greeting may stand in some title; they count where nothing else is
        known.
        """
        if self.cosine is None:
            return max(_UNSURE, self.cover / SURE_COVER)
        chance = _CHANCE + _CHANCE_GROWS * math.log(len(self.passages))
        return max(_UNSURE, (self.cosine - chance) / (_SURE_COSINE - chance))


class LoreIndex(Protocol):
    """Where lore stands."""

    def find(self, query: str, limit: int) -> LoreMatches:
        """Everything that may be found by a query, at least `limit` passages if there are."""
        ...

    def close(self) -> None:
        """Stop what takes long; nothing will be looked for any more."""
        ...


class LoreSource:
    """Searches documents in two hops (spec 004, 6.2).

    The first finds by meaning and words: the sum of both, standardised, since neither alone finds
    everything. What it finds often names the thing that is really asked for and says nothing of
    it; so the second hop takes in what is named there.
    """

    def __init__(self, shelf: LoreIndex) -> None:
        """Args:
        shelf: Where the documents are.
        """
        self._shelf = shelf
        self._found: dict[str, Passage] = {}

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        """The passages that fit best; see `Source.search`."""
        found = self._shelf.find(add_keywords(query, intent), limit)
        if not len(found.passages):
            return []
        scores = scale_scores(_standardize(found.dense) + _standardize(found.words), found.sure)
        order = np.argsort(-scores, kind="stable").tolist()
        rows = _add_named(order, found, limit)
        self._found = {found.passages[row].id: found.passages[row] for row in rows}
        return [_make_candidate(found.passages[row], float(scores[row])) for row in rows]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Whole passages; see `Source.fetch`."""
        return {i: self._found[i].text for i in ids if i in self._found}


def _add_named(order: list[int], found: LoreMatches, limit: int) -> list[int]:
    """The best rows; the last of them make room for others that the first name."""
    place = {row: n for n, row in enumerate(order)}
    named = {
        row for seed in order[:_SEEDS] for row in found.names.within(found.passages[seed].text)
    }
    further = sorted((row for row in named if place[row] >= limit), key=place.__getitem__)
    further = further[: int(_NAMED * limit)]
    return order[: limit - len(further)] + further


def _make_candidate(passage: Passage, score: float) -> Candidate:
    return Candidate(
        id=passage.id,
        kind="lore",
        title=passage.title,
        preview=make_preview(passage.text),
        score=score,
        tags=passage.tags,
    )


def _standardize(values: Floats) -> Floats:
    spread = float(values.std())
    scaled_values: Floats = (values - values.mean()) / (spread if spread > 1e-9 else 1.0)
    return scaled_values
