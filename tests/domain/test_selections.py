"""What selectors answer, in every dress."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import UnusableAnswerError
from topicloom.domain.recall_source import BUILT_IN_KINDS
from topicloom.domain.selector import parse_selection
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.state.language import Language

BOTH = ("lore_12", "narrative_t4")


@each_row(
    "text",
    [
        '<selection><rationale>Why.</rationale><pick id="lore_12"/><pick id="narrative_t4"/>'
        "</selection>",
        "<selection><rationale>Why.</rationale><pick id=lore_12><pick id='narrative_t4'>",
        "<think>perhaps lore_7</think><selection><rationale>Why.</rationale>"
        "<pick>lore_12</pick>\n<pick>[narrative_t4]</pick></selection>",
        "<selection><rationale>Why.</rationale>\n- lore_12\n- narrative_t4\n</selection>",
        '```json\n{"ids": ["lore_12", "narrative_t4"], "rationale": "Why."}\n```',
        '{"rationale": "Why.", "selected": [{"id": "lore_12"}, {"id": "narrative_t4"}]}',
        "＜selection＞＜rationale＞Why.＜/rationale＞＜pick id=＂lore_12＂/＞"
        "＜pick id=“narrative_t4”/＞＜/selection＞",
    ],
)
def test_picks_and_rationale(text: str) -> None:
    found = parse_selection(text)
    assert (found.ids, found.rationale) == (BOTH, "Why.")


@each_row(
    "text",
    ['["lore_12", "narrative_t4"]', "lore_12, narrative_t4", "I pick lore_12 and narrative_t4."],
)
def test_picks_are_read_without_a_rationale(text: str) -> None:
    assert parse_selection(text).ids == BOTH


@each_row("text", ["<selection></selection>", "<selection/>", "[]", '{"ids": []}'])
def test_nothing_is_an_answer(text: str) -> None:
    assert parse_selection(text).ids == ()


@each_row("text", ["", "No.", "{}", '{"answer": 3}', "<pick>", "[1, 2]"])
def test_an_answer_without_picks_is_refused(text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_selection(text)


def test_each_id_once() -> None:
    assert parse_selection('["lore_1", "lore_1", "lore_2"]').ids == ("lore_1", "lore_2")


@given(st.text() | st.text(alphabet='<>/selctionpkd="[]{}_1 '))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_selection(text)
    except UnusableAnswerError:
        return
    assert len(found.ids) == len(set(found.ids)) <= 50
    assert all(found.ids)


@pytest.mark.slow
@each_row("piece", ["<pick", "<selection>", "[", '{"ids":[', "lore_1", '<pick id="'])
def test_long_answers_are_read_in_time(piece: str) -> None:
    with suppress(UnusableAnswerError):
        parse_selection(piece * 100_000)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_prompt_names_the_lines_as_they_are(language: Language) -> None:
    text = load_prompt("selector", language)
    assert get_wording(language).candidates in text
    assert get_wording(language).message in text
    (example,) = re.findall(r"<selection>\n.*?</selection>", text, re.DOTALL)
    assert parse_selection(example).ids == ("lore_ombrix",)
    assert "[lore_ombrix]" in text
    assert all(f"`{kind}`" in text for kind in BUILT_IN_KINDS)
