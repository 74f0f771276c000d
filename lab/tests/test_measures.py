"""What is measured of a question."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom_lab.comparison.measures import (
    QuestionResult,
    answer_stands_in,
    answer_words,
    evidence_in,
    exact_match,
    f1_score,
)


def asked(**more: object) -> QuestionResult:
    row = {"question": "q", "category": "", "evidence": ("a", "b"), "found": ("a",)}
    cost = {"answer_in": None, "tokens": 1, "messages": 1, "originals": 1}
    return QuestionResult.model_validate(
        {**row, **cost, "seconds": 0.0, "cpu_seconds": 0.0, **more}
    )


def test_recall_is_the_share_that_was_found() -> None:
    assert asked().recall == 0.5
    assert not asked().whole
    assert asked(found=("b", "a")).whole
    assert asked(evidence=(), found=()).recall == 1.0


def test_the_oracle_needs_all_of_the_evidence_or_the_answer() -> None:
    assert not asked().oracle
    assert asked(answer_in=True).oracle
    assert asked(found=("a", "b"), answer_in=False).oracle


def test_evidence_counts_once_and_only_word_for_word() -> None:
    texts = {"a": "oak", "b": "pine", "c": "elm"}
    assert evidence_in(["a", "b", "a", "c"], ["a", "b"], texts, "oak and pi ne") == ("a",)


@each_row(
    ("reply", "answer", "exact", "f1"),
    [
        ("The 16th of May.", "16th of may", True, 1.0),
        ("in May", "16 May", False, 0.5),
        ("", "16 May", False, 0.0),
        ("", "the", True, 1.0),
        ("五月十六日", "五月十六", False, pytest.approx(8 / 9)),
    ],
)
def test_answers_are_compared_by_their_words(
    reply: str, answer: str, exact: bool, f1: float
) -> None:
    assert exact_match(reply, answer) == exact
    assert f1_score(reply, answer) == f1


@given(st.text(max_size=40), st.text(max_size=40))
def test_f1_is_one_for_the_same_words_and_never_more(first: str, second: str) -> None:
    assert f1_score(first, first) == 1.0
    assert 0.0 <= f1_score(first, second) == f1_score(second, first) <= 1.0


def test_an_answer_stands_in_a_text_as_whole_words_in_a_row() -> None:
    assert answer_stands_in("It was on 16 May, she said.", "16 May")
    assert not answer_stands_in("It was on 116 May", "16 May")
    assert not answer_stands_in("16 of May", "16 May")
    assert answer_stands_in("她说是五月十六日。", "五月十六日")
    assert answer_stands_in("anything", "...") is None
    assert answer_words("A dog, the cat") == ["dog", "cat"]
