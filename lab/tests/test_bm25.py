"""Plain BM25 against its formula."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from topicloom_lab.strategies.search import Bm25, plain_words

WORDS = st.lists(st.sampled_from(["oak", "tax", "run", "the"]), max_size=8).map(" ".join)


def by_formula(texts: list[str], query: str, place: int) -> float:
    """Robertson and Zaragoza 2009, with the idf that cannot be negative; k1 1.5, b .75."""
    split = [t.split() for t in texts]
    mean = sum(map(len, split)) / len(split)
    total = 0.0
    for word in query.split():
        holding = sum(word in words for words in split)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        count = split[place].count(word)
        norm = 1.5 * (1 - 0.75 + 0.75 * len(split[place]) / max(mean, 1e-9))
        total += idf * count * 2.5 / (count + norm) if count else 0.0
    return total


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_scores_are_those_of_the_formula(texts: list[str], query: str) -> None:
    index = Bm25()
    for text in texts:
        index.add(text)
    wanted = [by_formula(texts, query, place) for place in range(len(texts))]
    assert np.allclose(index.scores(query), wanted)


def test_an_empty_index_finds_nothing() -> None:
    assert Bm25().scores("oak").shape == (0,)


def test_words_are_as_they_stand_but_for_case() -> None:
    assert plain_words("The Oak's running, in 2026!") == [
        "the",
        "oak",
        "s",
        "running",
        "in",
        "2026",
    ]


def test_chinese_is_searched_by_characters_and_pairs() -> None:
    assert plain_words("买oak木") == ["买", "oak", "木"]
    assert plain_words("痛风") == ["痛", "风", "痛风"]
