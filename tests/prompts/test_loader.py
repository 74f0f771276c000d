"""Prompts: complete in both languages, finished as they stand, and true to the fixed words."""

from __future__ import annotations

import ast
import re
from itertools import chain, repeat
from pathlib import Path
from typing import get_args

import pytest
from tables import each_row

import topicloom
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.loader import load_prompt, load_rows, prompt_names
from topicloom.prompts.wording import get_wording
from topicloom.roles.brief import parse_brief
from topicloom.roles.reader import parse_readings
from topicloom.roles.rewriter import parse_query
from topicloom.roles.router import parse_routing
from topicloom.roles.splitter import parse_split
from topicloom.state.language import Language
from topicloom.state.splitting import LOOSE_ENDS

NAMES = prompt_names()
LANGUAGES: tuple[Language, ...] = get_args(Language)


@each_row("language", LANGUAGES)
@each_row("name", NAMES)
def test_every_prompt_is_there_and_finished(name: str, language: Language) -> None:
    text = load_prompt(name, language)
    assert len(text) > 100
    assert text == text.strip()
    assert not re.search(r"\{\{|\}\}|TODO", text)
    assert bool(re.search("[一-鿿]", text)) == (language == "zh")


@each_row("name", NAMES)
def test_languages_say_the_same(name: str) -> None:
    """As many headings, list items and tags in both."""
    for pattern in (r"^#", r"^[-0-9]", r"</?[a-z_]+", r"`[a-z_]+`"):
        counts = {
            language: len(re.findall(pattern, load_prompt(name, language), re.M))
            for language in LANGUAGES
        }
        assert len(set(counts.values())) == 1, (pattern, counts)


@each_row("language", LANGUAGES)
def test_prompts_quote_the_lines_that_follow_them(language: Language) -> None:
    words = get_wording(language)
    assert words.now in load_prompt("reader", language)
    assert words.topics in load_prompt("splitter", language)
    assert words.topics in load_prompt("router", language)
    assert words.looking_for in load_prompt("router", language)
    assert words.former_brief in load_prompt("brief", language)
    assert words.message in load_prompt("rewriter", language)
    assert words.task in load_prompt("arbiter", language)
    assert words.reply in load_prompt("arbiter", language)
    assert words.request in load_prompt("arbiter", language)
    assert words.boundary in load_prompt("splitter", language)
    assert words.dividing in load_prompt("splitter", language)
    for word in (words.active, words.dormant):
        assert word in load_prompt("splitter", language)


@each_row("language", LANGUAGES)
def test_the_examples_in_the_prompts_are_in_the_form_that_is_read(language: Language) -> None:
    def fill(name: str, *values: str) -> str:
        """A prompt with its placeholders filled in, the last value over and over."""
        filled = chain(values, repeat(values[-1]))
        return re.sub(r"‹\w[^‹›]*›", lambda _: next(filled), load_prompt(name, language))

    tags, json = (parse_readings(load_prompt(n, language)) for n in ("reader_tags", "reader_json"))
    assert [(r.topic, r.score) for r in (*tags, *json)] == [("t7", 0.8), ("t7", 0)] * 2
    assert tags[0].ranges == (("m12", "m12"), ("m30", "m31"))
    assert tags[0].summary == json[0].summary != ""
    name = {"en": "Ombrix's attic key", "zh": "欧布里的阁楼钥匙"}[language]
    assignments = parse_split(load_prompt("splitter", language))
    assert [(a.message, a.topic or a.name, a.also) for a in assignments] == [
        *((f"m{n}", LOOSE_ENDS, ()) for n in (101, 102)),
        *((f"m{n}", name, ()) for n in range(103, 107)),
        *((f"m{n}", "t2", ()) for n in (107, 108)),
        *((f"m{n}", "t5", (name,)) for n in (109, 110)),
    ]
    assert parse_routing(fill("router", "t3", "high", "why")).relevance == {"t3": 0.9}
    assert parse_brief(load_prompt("brief", language)).name == name
    assert parse_query(fill("rewriter", "How much is it?")) == "How much is it?"
    with pytest.raises(UnusableAnswerError):
        parse_readings(load_prompt("responder", language))


@pytest.mark.slow
def test_fixed_words_are_in_both_languages_and_are_those_that_the_code_names() -> None:
    used = set[str]()
    for path in Path(topicloom.__file__).parent.rglob("*.py"):
        if "get_wording" in (code := path.read_text("utf-8")):
            found = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Attribute)]
            of = re.compile(r"words|wording|get_wording\(.*\)")
            used |= {n.attr for n in found if of.fullmatch(ast.unparse(n.value))}
    for language in LANGUAGES:
        names = [row.partition(": ")[0] for row in load_rows(f"words/{language}")]
        assert sorted(names) == sorted(used), language


@each_row("language", LANGUAGES)
def test_complaints_name_the_element(language: Language) -> None:
    assert "<topic_split>" in get_wording(language).complaint.format(form="<topic_split>")


@pytest.mark.parametrize(
    ("language", "own", "others"),
    [
        ("en", "`activate_topic` and its searches", "Other tools"),
        ("zh", "`activate_topic` 和它的搜索", "其他工具"),
    ],
)
def test_the_main_model_keeps_silent_about_the_memory_alone(
    language: Language, own: str, others: str
) -> None:
    prompt = load_prompt("responder", language)
    assert prompt.index(own) < prompt.index(others)
    assert "- `forgotten`" in prompt
