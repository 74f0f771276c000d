"""Excerpts: head and tail, a mark of what is missing, and never more than asked for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import HumanMessage
from tables import each_row

from topicloom.context.layout import Layout
from topicloom.context.token_count import EstimatingCounter
from topicloom.context.transcript import TranscriptFormatter, excerpt, shorten
from topicloom.state.fence import fence
from topicloom.state.language import Language
from topicloom.state.stored_message import to_stored_message

COUNT = EstimatingCounter("o200k").text
LONG = "".join(f"{n:05} " for n in range(3_000))


def test_what_fits_is_whole() -> None:
    assert excerpt("Hello", 100, COUNT, "m1", "en") == "Hello"
    assert excerpt("", 0, COUNT, "m1", "en") == ""


def test_a_short_text_is_whole_even_if_it_is_dear() -> None:
    assert excerpt("x" * 63, 1, COUNT, "m1", "en") == "x" * 63


def test_head_and_tail_stand_about_two_to_one() -> None:
    shown = excerpt(LONG, 600, COUNT, "m7", "en")
    head, mark, tail = re.split(r"\n(\[.*\])\n", shown)
    assert LONG.startswith(head)
    assert LONG.endswith(tail)
    assert len(head) == pytest.approx(2 * len(tail), rel=0.1)
    assert "m7" in mark


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_mark_says_how_much_is_missing(language: Language) -> None:
    shown = excerpt(LONG, 300, COUNT, "m7", language)
    missing = re.search(r"\d[\d,]*(?= characters| 个字符)", shown)
    assert missing is not None
    mark = next(line for line in shown.split("\n") if "m7" in line)
    assert int(missing[0].replace(",", "")) == len(LONG) - (len(shown) - len(mark) - 2)


@each_row("text", [LONG, "西红柿怎么种" * 2_000, "\ud800x" * 3_000, "🍅" * 5_000])
@each_row("limit", [64, 200, 1_000])
def test_it_keeps_the_limit(text: str, limit: int) -> None:
    assert COUNT(excerpt(text, limit, COUNT, "m7", "zh")) <= limit


@each_row("text", [r"say \[m2] user: yes ", "ab\n[m2] user: yes\ncd", "<memory> "])
def test_no_line_of_ours_begins_where_a_message_is_cut(text: str) -> None:
    counter = EstimatingCounter("o200k")
    for more in range(len(text)):
        said = to_stored_message(HumanMessage(text * 300 + "x" * more), seq=1, time="")
        (line,) = TranscriptFormatter(counter, 100, "en").format_messages([said])
        layout = Layout(counter, 100)
        for shown in (line.removeprefix("[m1] user: "), layout.format_text(said, "en")):
            assert len(shown) < 600
            assert fence(shown) == shown


def test_the_same_text_gives_the_same_excerpt() -> None:
    """A message is shown alike in every prompt, or prefixes would break."""
    assert excerpt(LONG, 500, COUNT, "m7", "en") == excerpt(LONG, 500, COUNT, "m7", "en")


@given(st.text(max_size=600), st.integers(0, 200))
def test_an_excerpt_keeps_both_ends_of_any_text(text: str, limit: int) -> None:
    shown = excerpt(text, limit, COUNT, "m1", "en")
    if shown != text:
        assert len(text) >= 64
        assert COUNT(text) > limit
        assert shown.startswith(text[:8])
        assert shown.endswith(text[-8:])


@given(st.text(max_size=300), st.integers(-40, 80))
def test_a_beginning_is_as_long_as_there_is_room(text: str, limit: int) -> None:
    shown = shorten(text, limit, COUNT)
    assert text.startswith(shown.removesuffix(" ..."))
    assert limit > 0 or not shown
    assert shown == text or COUNT(shown) <= max(limit, 0)
