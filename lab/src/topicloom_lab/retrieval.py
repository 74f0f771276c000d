"""Retrieval: does the right text come first, by the encoder alone and by the whole ranking?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, Field, model_validator

from topicloom import Embedder, count_budget_tokens
from topicloom.lab import (
    FLAT,
    RECALL,
    Asked,
    Floats,
    LexicalIndex,
    Messages,
    Vectors,
)
from topicloom_app.recordings.records import parse_record, read_recording

PART = 32
"""Texts between two reports of progress."""
_FIRST = 10
"""Texts that are taken for found."""


class RetrievalSet(BaseModel, frozen=True):
    """Texts, and queries with the places of the right ones."""

    docs: Annotated[tuple[str, ...], Field(min_length=1)]
    queries: Annotated[
        tuple[tuple[str, Annotated[tuple[int, ...], Field(min_length=1)]], ...],
        Field(min_length=1),
    ]

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        for query, places in self.queries:
            if wrong := [place for place in places if not 0 <= place < len(self.docs)]:
                raise ValueError(f"{query!r} names text {wrong[0]}, there are {len(self.docs)}")
        return self


def load_retrieval(path: Path) -> RetrievalSet:
    """Read a file of texts and queries; `.xz` is unpacked.

    Raises:
        NotAConversationError: It cannot be read or holds something else.
    """
    wanted = '{"docs": [text, ...], "queries": [[text, [index of a right text, ...]], ...]}'
    text = read_recording(path)
    return parse_record(
        lambda: RetrievalSet.model_validate_json(text), str(path), "retrieval set", wanted
    )


@dataclass(frozen=True, slots=True)
class Found:
    """How well one way finds the right texts."""

    mrr: float
    """Mean of one over the place of the first right text."""
    recall: float
    """Share of the queries with a right text among the first ten."""
    shown: float
    """Mean tokens of the first ten."""
    precision: float
    """Share of these tokens that is of right texts."""


WAYS = ("words", "encoder", "both", "ranking")
"""BM25, cosines, flat search by both, and the ranking with price and surroundings."""


def evaluate_retrieval(
    given: RetrievalSet, embedder: Embedder, progress: Callable[[int], None]
) -> dict[str, Found]:
    """By way, how well it does; the texts are ranked as a user's messages in their order."""
    vectors = np.concatenate(list(_embed(given.docs, embedder, progress)))
    asked = [query for query, _ in given.queries]
    queries = np.concatenate(
        list(_embed(asked, embedder, lambda done: progress(len(given.docs) + done)))
    )
    words, messages = LexicalIndex(), as_messages(given.docs)
    for text in given.docs:
        words.add("", text)
    places: dict[str, list[float]] = {way: [] for way in WAYS}
    shown: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for (query, right), vector in zip(given.queries, queries, strict=True):
        cosine = (vectors @ vector).astype(float)
        lexical, cover = words.scores(query)
        compared = Asked(query, messages, cosine, lexical, cover)
        scores = (lexical, cosine, FLAT.rank(compared), RECALL.rank(compared))
        for way, found in zip(WAYS, scores, strict=True):
            places[way].append(place_of(found, right))
            shown[way].append(count_first(found, right, messages.costs))
    return {way: summarize(places[way], shown[way]) for way in WAYS}


def place_of(scores: Floats, right: Sequence[int]) -> float:
    """Place of the best right text, from 1 on; half of those that score the same go before it."""
    best = scores[list(right)].max()
    return float(1 + (scores > best).sum() + ((scores == best).sum() - 1) // 2)


def count_first(scores: Floats, right: Sequence[int], costs: Floats) -> tuple[float, float]:
    """Tokens of the first ten texts, and of those that are right among them."""
    first = np.argsort(-scores, kind="stable")[:_FIRST]
    return float(costs[first].sum()), float(costs[np.intersect1d(first, list(right))].sum())


def summarize(places: Sequence[float], shown: Sequence[tuple[float, float]]) -> Found:
    """The figures of a way, by query: the place of the best right text, and `count_first`."""
    found, (tokens, right) = np.array(places), np.array(shown).sum(axis=0)
    return Found(
        mrr=float((1 / found).mean()),
        recall=float((found <= _FIRST).mean()),
        shown=float(tokens / len(shown)),
        precision=float(right / tokens),
    )


def as_messages(texts: Sequence[str]) -> Messages:
    """Texts as ranking takes messages: all of one user."""
    none = np.zeros(len(texts), dtype=np.int64)
    return Messages(
        costs=np.array([float(count_budget_tokens(text)) for text in texts]),
        from_user=np.ones(len(texts)),
        names=[""],
        speaker=none,
        topics=none,
        opens=none > 0,
    )


def _embed(
    texts: Sequence[str], embedder: Embedder, progress: Callable[[int], None]
) -> Iterator[Vectors]:
    for begin in range(0, len(texts), PART):
        yield embedder.embed(texts[begin : begin + PART])
        progress(min(begin + PART, len(texts)))
