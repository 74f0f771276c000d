"""A planner's answer, and edits as models write them, read with good will."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import TurnPlan, UnusableAnswerError
from topicloom.domain.edits import parse_edits
from topicloom.domain.plan import DomainWeights, SearchIntent
from topicloom.domain.planner import parse_plan
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.state.language import Language

LANGUAGES: tuple[Language, ...] = get_args(Language)
EDIT = ("SET", "item_sword_01.count", 3)


def parts_of(text: str) -> list[str]:
    """The examples of answers in a prompt."""
    return re.findall("<turn_plan>\n.*?</turn_plan>", text, re.DOTALL)


@each_row("language", LANGUAGES)
def test_the_examples_in_the_prompt(language: Language) -> None:
    narrative, edit = map(parse_plan, parts_of(load_prompt("planner", language)))
    assert (narrative.kind, narrative.template) == ("narrative", "default")
    name = {"en": "Ombrix", "zh": "欧布里"}[language]
    assert name in narrative.goal
    assert name in narrative.search.keywords
    assert narrative.search.when == "past"
    weights = {"narrative": 0.8, "lore": 0.2, "event": 0.5}
    assert narrative.search.weights.model_dump(exclude_unset=True) == weights
    assert (edit.kind, edit.edits) == ("state_edit", (("SET", "ombrix.keys", 3),))
    assert not edit.search.enabled
    assert name in edit.reply


@each_row("language", LANGUAGES)
def test_the_prompt_quotes_the_lines_that_follow_it(language: Language) -> None:
    words, text = get_wording(language), load_prompt("planner", language)
    for line in (words.data, words.events, words.templates, words.message):
        assert line in text


@each_row(
    ("text", "plan"),
    [
        ("<kind>narrative</kind>", TurnPlan()),
        (
            "<turn_plan><kind>Narrative<focus>q1<goal>Go</turn_plan>",
            TurnPlan(focus="q1", goal="Go"),
        ),
        ("<focus>none</focus><goal>A &amp; B</goal>", TurnPlan(goal="A & B")),
        ('{"kind": "narrative", "focus": "q1"}', TurnPlan(focus="q1")),
        ('```json\n{"turn_plan": {"kind": "narrative", "goal": "Go"}}\n```', TurnPlan(goal="Go")),
        (
            '{"kind": "narrative", "keywords": ["a", "b", "a"], "when": "future"}',
            TurnPlan(search=SearchIntent(keywords=("a", "b"), when="future")),
        ),
        (
            "<kind>叙事</kind><keywords>神庙；“钥匙”、村长</keywords>",
            TurnPlan(search=SearchIntent(keywords=("神庙", "钥匙", "村长"))),
        ),
        (
            "<kind>narrative</kind><weights narrative='90%' lore=2 event='x'/>",
            TurnPlan(search=SearchIntent(weights=DomainWeights(narrative=0.9))),
        ),
        (
            '<think><kind>state_edit</kind></think><kind>narrative</kind><edits>[["INC"]]</edits>',
            TurnPlan(),
        ),
        ("<kind>state_edit or narrative</kind>", TurnPlan()),
        (
            '{"kind": "state_edit", "edits": [["SET", "item_sword_01.count", 3]], "reply": "3."}',
            TurnPlan(
                kind="state_edit", search=SearchIntent(enabled=False), edits=(EDIT,), reply="3."
            ),
        ),
        (
            "<kind>state edit</kind><edits>"
            '{"op": "set", "path": "item_sword_01.count", "value": 3}',
            TurnPlan(kind="state_edit", search=SearchIntent(enabled=False), edits=(EDIT,)),
        ),
        (
            "<kind>state_edit</kind>",
            TurnPlan(kind="state_edit", search=SearchIntent(enabled=False)),
        ),
    ],
)
def test_a_plan_is_read_from_each_form_of_answer(text: str, plan: TurnPlan) -> None:
    assert parse_plan(text) == plan


@each_row("text", ["", "I think so.", "<turn_plan></turn_plan>", "[1, 2]", "{}"])
def test_an_answer_without_a_plan_is_refused(text: str) -> None:
    with pytest.raises(UnusableAnswerError, match="no plan"):
        parse_plan(text)


tags = st.sampled_from(
    ["<turn_plan>", "<kind>", "state_edit", "</kind>", "<edits>", '[["SET", "a", 1]]', "</edits>",
     "<weights lore=", '"9"', "/>", "<keywords>", ";", "{", '"kind":', "[", "]", "}", "\ud83d"]
)  # fmt: skip


@given(st.lists(tags | st.text(max_size=5), max_size=20).map("".join))
def test_any_text_is_a_plan_that_can_be_stored_or_none(text: str) -> None:
    try:
        plan = parse_plan(text)
    except UnusableAnswerError:
        return
    assert TurnPlan.model_validate(plan.model_dump()) == plan
    for said in (plan.focus or "", plan.goal, plan.template, plan.reply, *plan.search.keywords):
        said.encode()


class TestEdits:
    @each_row(
        "said",
        [
            [["SET", "a.b", 1]],
            (("set", "a.b", 1),),
            {"edits": [["SET", "a.b", 1]]},
            {"edits": ["SET", "a.b", 1]},
            {"edits": '[["SET", "a.b", 1]]'},
            {"edits": ['["SET", "a.b", 1]']},
            {"edits": [{"op": "SET", "path": "a.b", "value": 1}]},
            {"op": "SET", "path": "a.b", "value": 1},
            'Here: [["SET", "a.b", 1]]',
            '{"edits": [["SET", "a.b", 1]]} and more',
        ],
    )
    def test_edits_are_read_from_many_forms(self, said: Any) -> None:
        assert parse_edits(said) == [["SET", "a.b", 1]]

    def test_wrapped_without_end(self) -> None:
        said: Any = [["SET", "a.b", 1]]
        for _ in range(2_000):
            said = {"edits": said}
        assert parse_edits(said) == []

    def test_other_words_for_an_operation_are_understood(self) -> None:
        said = [["delete", "a"], ["ADD", "b", 1], ["increment", "c.d", 2]]
        assert parse_edits(said) == [["REMOVE", "a"], ["PUSH", "b", 1], ["INC", "c.d", 2]]

    @each_row("said", ["", "nothing", None, 3, {}, [], {"edits": 3}, {"a": [1]}])
    def test_what_holds_no_edits_gives_none(self, said: Any) -> None:
        assert parse_edits(said) == []

    def test_what_cannot_be_read_stays_for_the_error(self) -> None:
        assert parse_edits([["SET"], 3, "x", None]) == [["SET"], 3, "x", None]

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda v: (
                st.lists(v, max_size=3)
                | st.dictionaries(st.sampled_from(["edits", "op", "path", "x"]), v, max_size=3)
            ),
        )
    )
    def test_any_data_is_read_as_edits_without_an_error(self, said: Any) -> None:
        assert isinstance(parse_edits(said), list)
        assert isinstance(parse_edits(json.dumps(said)), list)
