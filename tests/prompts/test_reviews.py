"""A reviewer's answer, read with good will; and the prompts of reviewer and merger."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.review.decisions import Assessment
from topicloom.review.reviewer import parse_review
from topicloom.state.language import Language

LANGUAGES: tuple[Language, ...] = get_args(Language)
OAK = Assessment(
    name="Oak top", brief="A worktop.", summary="Oak was chosen.", importance=0.8, once=False
)


@each_row(
    "text",
    [
        "<topic_review><name>Oak top</name><brief>A worktop.</brief><summary>Oak was chosen."
        "</summary><importance>0.8</importance><lasting>yes</lasting></topic_review>",
        "<think>hm</think>```xml\n<topic_review>\n<name>Oak\ntop</name><brief>A worktop."
        "<summary>Oak was chosen.<importance>80 %<lasting>Yes.",
        '{"topic_review": {"name": "Oak top", "brief": "A worktop.", "summary": "Oak was chosen.",'
        ' "importance": 0.8, "lasting": "yes"}}',
        "＜topic_review＞＜name＞Oak top＜／name＞＜brief＞A worktop.＜／brief＞"
        "＜summary＞Oak was chosen.＜／summary＞＜importance＞８/10＜／importance＞"
        "＜lasting＞yes＜／lasting＞＜／topic_review＞",
    ],
)
def test_a_review_is_read_from_each_form(text: str) -> None:
    assert parse_review(text) == OAK


@each_row(
    ("importance", "value"),
    [("0.3", 0.3), ("low", 0.1), ("高", 0.9), ("", 0.5), ("who knows", 0.5), ("-1", 0.0)],
)
def test_an_importance_is_read_from_each_form(importance: str, value: float) -> None:
    text = f"<summary>s</summary><importance>{importance}</importance>"
    assert parse_review(text).importance == value


@each_row(
    ("lasting", "once"), [("no", True), ("No.", True), ("否", True), ("yes", False), ("", False)]
)
def test_whether_it_is_over(lasting: str, once: bool) -> None:
    assert parse_review(f"<summary>s</summary><lasting>{lasting}</lasting>").once == once


@each_row("text", ["", "I'd rather not.", "<name>x</name>", '{"name": "x"}'])
def test_a_review_without_a_summary_is_refused(text: str) -> None:
    with pytest.raises(UnusableAnswerError, match="no summary"):
        parse_review(text)


@given(st.text(alphabet='<>/"{}:, sumarynbiefop\n', max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_review(text)
    except UnusableAnswerError:
        return
    assert found.summary
    assert 0 <= found.importance <= 1


@each_row("language", LANGUAGES)
def test_examples_of_the_prompts_are_read_and_their_marks_are_ours(language: Language) -> None:
    example = parse_review(re.sub(r"‹[^‹›]+›", "1", load_prompt("reviewer", language)))
    assert (example.name, example.importance) == ("1", 1.0)
    assert get_wording(language).former_brief in load_prompt("reviewer", language)
    assert get_wording(language).one_topic in load_prompt("merger", language)
    assert get_wording(language).other_topic in load_prompt("merger", language)
