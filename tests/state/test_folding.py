"""Texts folded for comparing, and cut between characters."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.search.sentences import sentences_of
from topicloom.search.words import words_of
from topicloom.state.folding import fold
from topicloom.state.safe_text import clip, place_cut, split_characters

FAMILY, FLAG = "👩\u200d👩\u200d👧\u200d👦", "🇨🇳"


@each_row(
    ("written", "folded"),
    [
        ("Café CAFE\u0301 ｃａｆé", "cafe cafe cafe"),
        ("İstanbul", "istanbul"),
        ("Straße STRASSE", "strasse strasse"),
        ("co\u00adop ﬁne", "coop fine"),
        ("كِتَابٌ كتاب", "كتاب كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("ガ ｶﾞ カ\u3099", "ガ ガ ガ"),
        ("मेरी किताब", "मेरी किताब"),
        ("한국어", "한국어"),
        ("（海鲜）", "(海鲜)"),
    ],
)
def test_one_form_of_what_is_written_in_several_ways(written: str, folded: str) -> None:
    assert fold(written) == folded


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@each_row(
    ("text", "words"),
    [
        ("मेरी किताब", ["मेरी", "किताब"]),
        ("আমার নাম", ["আমার", "নাম"]),
        ("كِتاب", ["كتاب"]),
        ("ถั่ว", ["ถั่", "ว", "ถั่ว"]),
        ("用 Python 写café", ["用", "python", "写", "caf"]),
    ],
)
def test_words_are_no_single_marks(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize("character", [FAMILY, FLAG, "न्\u200dद", "e\u0301", "👍🏽"])
def test_no_character_is_cut_in_two(character: str) -> None:
    text = character * 40
    for limit in range(2, 60):
        assert set(split_characters(clip(text, limit).removesuffix("…"))) <= {character}
    parts = [text[begin:end] for begin, end in sentences_of(text, 20)]
    assert "".join(parts) == text
    assert {c for part in parts for c in split_characters(part)} == {character}


@given(
    st.text(alphabet="a e\u0301\u200d👩🇨🇳\u0e31\u0e19क\u093f\n", max_size=200), st.integers(0, 220)
)
def test_a_cut_is_never_behind_its_place_and_parts_nothing(text: str, place: int) -> None:
    found = place_cut(text, place)
    assert 0 <= found <= min(place, len(text))
    if len(text) < 64:
        assert split_characters(text[:found]) + split_characters(text[found:]) == split_characters(
            text
        )
