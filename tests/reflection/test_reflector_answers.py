"""A reflector's answer, read with good will; and its prompt."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import Claim, UnusableAnswerError
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.reflection.reflector import parse_fact_ids, parse_reflection
from topicloom.state.language import Language

NAME = "reflector"
LANGUAGES: tuple[Language, ...] = get_args(Language)
NUTS = Claim("Allergic to nuts.", ("m3",))
LEEDS = Claim("Lives in Leeds.", ("m4", "m5"), ("f2",))


@each_row(
    "text",
    [
        '<reflection><fact msg_id="m3">Allergic to nuts.</fact>'
        '<fact msg_id="m4-m5" supersedes="f2">Lives in Leeds.</fact></reflection>',
        '<fact msg_id="m3">Allergic to nuts.\n'
        '<fact msg_id="m4, m5" supersedes="f2">Lives in Leeds.',
        "<think>hm</think>```xml\n<reflection>\n<fact msg_id='[m3]'>Allergic\nto nuts.</fact>\n"
        "<fact msg_ids='M4 M5' replaces='[F2]'>Lives in Leeds.</fact>",
        '{"facts": [{"text": "Allergic to nuts.", "messages": ["m3"]}, '
        '{"fact": "Lives in Leeds.", "msg_id": "m4, m5", "supersedes": 2}]}',
        '[{"text": "Allergic to nuts.", "messages": [3]}, '
        '{"text": "Lives in Leeds.", "messages": ["m4", "m5"], "supersedes": ["f2"]}]',
        "＜reflection＞＜fact msg_id＝“m3”＞Allergic to nuts.＜／fact＞"
        "＜fact msg_id＝“m4 m5” supersedes＝“f2”＞Lives in Leeds.＜／fact＞＜／reflection＞",
    ],
)
def test_facts_are_read_from_each_form(text: str) -> None:
    assert parse_reflection(text) == (NUTS, LEEDS)


@each_row(
    "text", ["<reflection></reflection>", "<reflection/>", '{"facts": []}', "[]", "<reflection>\n"]
)
def test_nothing_to_note(text: str) -> None:
    assert parse_reflection(text) == ()


def test_a_fact_without_ids_is_read_and_one_without_words_is_not() -> None:
    assert parse_reflection('<fact>Lives.</fact><fact msg_id="m1"></fact>') == (
        Claim("Lives.", ()),
    )


@each_row("text", ["", "Nothing to note.", "<fact", '{"other": 1}', "<facts>x"])
def test_an_answer_without_facts_is_refused(text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_reflection(text)


@given(st.text(alphabet='<>/="fact reflection msg_id m1 f2 {}[]:,&；', max_size=120))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        facts = parse_reflection(text)
    except UnusableAnswerError:
        return
    assert all(f.text for f in facts)


@each_row(
    ("text", "ids"),
    [
        ("f2", ("f2",)),
        ("[F2], fact 3", ("f2", "f3")),
        ("4", ("f4",)),
        ("", ()),
        ("if2", ()),
        ("none", ()),
    ],
)
def test_fact_ids_are_read_from_each_form(text: str, ids: tuple[str, ...]) -> None:
    assert parse_fact_ids(text) == ids


@each_row("language", LANGUAGES)
def test_the_prompt_is_finished_and_true_to_its_form(language: Language) -> None:
    text = load_prompt(NAME, language)
    assert text == text.strip()
    assert get_wording(language).known_facts in text
    filled = iter(["m12", "-", "m14", "m18", "f2", "-"])
    example = re.sub(r"‹\w[^‹›]+›", lambda _: next(filled), text)
    assert [(f.messages, f.supersedes) for f in parse_reflection(example)] == [
        (("m12",), ()),
        (("m14", "m18"), ("f2",)),
    ]


def test_languages_say_the_same() -> None:
    for pattern in (r"^#", r"^[-0-9]", r"</?[a-z_]+", r"`[a-z_]+`"):
        counts = {x: len(re.findall(pattern, load_prompt(NAME, x), re.M)) for x in LANGUAGES}
        assert len(set(counts.values())) == 1, (pattern, counts)
