"""NameFinder in texts, in alphabets and in Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from topicloom.index.words import NameFinder

NAMES = NameFinder(
    ["Big Stone Gap (film)", "Adriana Trigiani", "", "It", "神庙钥匙", "村", "Tom", "The Who"]
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("The director of BIG STONE GAP, Adriana Trigiani.", {0, 1}),
        ("It is a big stone; a gap.", set()),
        ("那把神庙钥匙在村里", {4}),
        ("Tomorrow, customs.", set()),
        ("ask tom", {6}),
        ("the who of it", set()),
        ("", set()),
    ],
)
def test_whole_words_and_runs(text: str, rows: set[int]) -> None:
    assert NAMES.within(text) == rows


def test_two_things_of_one_name() -> None:
    names = NameFinder(["Ed Wood", "Ed Wood (film)", "山 （小说）"])
    assert names.within("Was Ed Wood kind? 山") == {0, 1}


def test_no_name_is_longer_than_a_dozen_words() -> None:
    long = " ".join(f"word{n}" for n in range(13))
    assert NameFinder([long]).within(long) == set()


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=60))
def test_any_text(names: list[str], text: str) -> None:
    assert NameFinder(names).within(text) <= set(range(len(names)))
