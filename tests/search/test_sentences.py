"""Excerpts: whole sentences of a text, in their order, that say most of a query."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.context.tokens import count_budget_tokens
from topicloom.context.transcript import show_stretches
from topicloom.search.excerpts import RankedSentences
from topicloom.search.sentences import sentences_of

ENGLISH = (
    "Here is a plan for the move.\n\n1. Boxes come on Monday. Ask for twenty.\n"
    + "2. Label each of them by its room. The kitchen needs most of them.\n" * 12
    + "3. The piano tuner is called Okafor. She comes after the move!\n"
    + "4. Keep the keys until the last day. Write down what the meters say.\n" * 12
)
CHINESE = (
    "搬家的安排如下。\n"
    + "箱子要按房间贴上标签。厨房的东西最多！\n" * 12
    + "调钢琴的师傅姓欧。他在搬家以后来。\n"
    + "钥匙留到最后一天。水表和电表的数字要记下来。\n" * 12
)


@pytest.mark.parametrize(
    ("text", "query", "said", "beside"),
    [
        (
            ENGLISH,
            "Who is the piano tuner?",
            "The piano tuner is called Okafor.",
            "She comes after",
        ),
        (CHINESE, "调钢琴的师傅姓什么？", "调钢琴的师傅姓欧。", "他在搬家以后来。"),
    ],
)
def test_the_sentences_that_matter_with_what_stands_beside_them(
    text: str, query: str, said: str, beside: str
) -> None:
    stretches = RankedSentences.of(text, query).select(60, count_budget_tokens)
    shown = " ".join(text[slice(*stretch)] for stretch in stretches)
    assert said in shown
    assert beside in shown
    assert text[RankedSentences.of(text, query).best :].startswith(("3. The piano", said))
    for language in ("en", "zh"):
        quoted = show_stretches(text, stretches, "m4", language)
        assert "m4" in quoted
        assert count_budget_tokens(quoted) < 60 + 30


@given(st.text("ab1.! \n。？", max_size=400), st.text("ab ", max_size=9), st.integers(0, 90))
def test_they_are_the_text_word_for_word(text: str, query: str, room: int) -> None:
    spans = sentences_of(text, 40)
    said = "".join(c for s in spans for c in text[slice(*s)] if not c.isspace())
    assert said == "".join(text.split()), "nothing is lost"
    stretches = RankedSentences.of(text, query).select(room, count_budget_tokens)
    assert sum(count_budget_tokens(text[slice(*s)]) for s in stretches) <= room
    flat = [place for stretch in stretches for place in stretch]
    assert flat == sorted(flat)
    shown = show_stretches(text, stretches, "m1", "en")
    assert all(text[slice(*s)] in shown for s in stretches)


def test_a_number_goes_with_what_it_counts() -> None:
    assert [ENGLISH[slice(*s)] for s in sentences_of(ENGLISH)][1] == "1. Boxes come on Monday."


def test_without_room_for_the_best_sentence_there_is_none() -> None:
    assert (
        RankedSentences.of(ENGLISH, "Who is the piano tuner?").select(6, count_budget_tokens) == ()
    )


def test_gaps_are_marked_and_the_last_says_how_much_is_missing() -> None:
    text = "One. Two. Three.\nFour."
    assert show_stretches(text, ((0, 4), (10, 22)), "m7", "en").startswith("One.\n[... ")
    shown = show_stretches(text, ((5, 9), (17, 22)), "m7", "en")
    assert shown.startswith("[…] Two.\n[... ")
    assert shown.endswith("\nFour.")
    assert show_stretches(text, ((0, 16),), "m7", "en").splitlines()[0] == "One. Two. Three."
    assert show_stretches(text, ((0, 22),), "m7", "en") == text
    assert show_stretches("(removed on request)", ((5, 90),), "m7", "en") == "(removed on request)"


def test_marks_in_a_row_end_one_sentence() -> None:
    text = "天气真的很好！！！我们去爬山吧。"
    assert [text[slice(*s)] for s in sentences_of(text)] == ["天气真的很好！！！", "我们去爬山吧。"]


@each_row("unit", ["中文字。", "a\n", "ab cd. "])
def test_few_sentences_are_counted_of_a_text_that_says_nothing_of_the_query(unit: str) -> None:
    counted = list[str]()

    def count(text: str) -> int:
        counted.append(text)
        return count_budget_tokens(text)

    stretches = RankedSentences.of(unit * 20_000, "Who is the piano tuner?").select(400, count)
    assert stretches
    assert len(counted) < 400


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I met Prof. Weiss. He is kind.", ["I met Prof. Weiss.", "He is kind."]),
        ("It is v3.8, e.g. here. No. I read it.", ["It is v3.8, e.g. here.", "No.", "I read it."]),
        (
            "It is at 4 a.m. on Monday. “Really?” Yes.",
            ["It is at 4 a.m. on Monday.", "“Really?”", "Yes."],
        ),
        ("Dr. Li来了。“真的吗？”是3.5元。", ["Dr. Li来了。", "“真的吗？”", "是3.5元。"]),
    ],
)
def test_no_abbreviation_number_or_small_letter_ends_a_sentence(
    text: str, sentences: list[str]
) -> None:
    assert [text[slice(*s)] for s in sentences_of(text)] == sentences
