"""NameFinder in texts, in alphabets and in Chinese; words that tell what a text is about."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.search.bm25 import LexicalIndex
from topicloom.search.words import NameFinder, telling_words

NAMES = NameFinder(
    ["Big Stone Gap (film)", "Adriana Trigiani", "", "It", "神庙钥匙", "村", "Tom", "The Who"]
)


@each_row(
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
def test_names_are_found_in_any_text_without_an_error(names: list[str], text: str) -> None:
    assert NameFinder(names).within(text) <= set(range(len(names)))


@each_row(
    ("text", "words"),
    [
        ("她有什么忌口", {"她", "她有", "忌", "口", "忌口"}),
        ("谁的猫？", {"猫", "的猫"}),
        ("what can't she eat", {"eat", "t"}),
    ],
)
def test_words_that_ask_tell_nothing(text: str, words: set[str]) -> None:
    assert telling_words(text) == words


def test_a_question_is_held_without_the_words_that_it_asks_with() -> None:
    index = LexicalIndex()
    for text in ("王工换了密封圈", "明天下雨"):
        index.add("", text)
    assert index.scores("谁换了密封圈？")[1] > 0.9
    assert index.scores("什么时候下雪？")[1] < 0.5


def test_a_text_that_stands_many_times_scores_like_as_many_texts() -> None:
    apart, together = LexicalIndex(), LexicalIndex()
    for text, times in (("the boat is red", 3), ("the oven", 1), ("船很红。", 2)):
        together.add("", text, times)
        for _ in range(times):
            apart.add("", text)
    for query in ("boat", "oven and boat", "红"):
        (one, held), (each, same) = together.scores(query), apart.scores(query)
        assert one.tolist() == each[[0, 3, 4]].tolist()
        assert held == same


@pytest.mark.parametrize("others", [1, 40])
def test_passages_of_one_message_that_are_the_same(others: int) -> None:
    apart, together = LexicalIndex(), LexicalIndex()
    passages = ["red boat " * 40 + ".", *(f"oven {n:02} " * 45 + "." for n in range(others))] * 2
    together.add("", "\n".join(passages))
    for passage in passages:
        apart.add("", passage)
    for query in ("boat", "oven 00", "red boat and hot oven"):
        (one, held), (each, same) = together.scores(query), apart.scores(query)
        assert one.tolist() == [max(each)]
        assert held == same


def test_a_pair_says_more_than_its_characters_apart() -> None:
    index = LexicalIndex()
    for text in ("海鲜", "鲜海"):
        index.add("", text)
    together, apart = index.scores("海鲜")[0]
    assert together > 2 * apart
