"""Cues: each phrase fires in sentences that people write, and ordinary sentences do not."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
from tables import each_row

from topicloom.prompts.loader import Cues, load_cues, normalize

AMNESIA = load_cues("amnesia")
FILLERS = load_cues("fillers")
ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("cues.jsonl").read_text("utf-8").splitlines()
]
"""A phrase with sentences that have it, or an ordinary sentence that has none, in each row."""
SENTENCES = {
    language: {row["cue"]: row["sentences"] for row in ROWS if row.get("language") == language}
    for language in ("en", "zh")
}
CASES = [
    (cue, text) for cues in SENTENCES.values() for cue, texts in cues.items() for text in texts
]
ORDINARY = [row["ordinary"] for row in ROWS if "ordinary" in row]


def lines_of(name: str) -> list[str]:
    text = (files("topicloom.prompts") / "cues" / f"{name}.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@each_row("language", SENTENCES)
def test_every_cue_has_three_sentences(language: str) -> None:
    sentences = SENTENCES[language]
    assert set(lines_of(f"amnesia_{language}")) == set(sentences)
    assert not [cue for cue, texts in sentences.items() if len(set(texts)) < 3]


@each_row(("cue", "text"), CASES)
def test_a_cue_is_found(cue: str, text: str) -> None:
    assert Cues.of([cue]).found_in(text)
    assert AMNESIA.found_in(text)


@each_row("text", ORDINARY)
def test_ordinary_sentences_hold_no_cue(text: str) -> None:
    assert not AMNESIA.found_in(text)


@each_row(
    "text", ["ok", "OK!", " Thanks. ", "got it", "Go on...", "好的。", "嗯", "然后呢？", "报错了！"]
)
def test_fillers_are_recognised(text: str) -> None:
    assert FILLERS.is_all_of(text)


@each_row("text", ["ok then let's plant beans", "thanks for the soup recipe", "好吃"])
def test_a_filler_with_more_to_it_is_none(text: str) -> None:
    assert not FILLERS.is_all_of(text)


def test_a_gap_is_up_to_three_words() -> None:
    cues = Cues.of(["we talked ... before"])
    assert cues.found_in("We talked before")
    assert cues.found_in("we talked one two three before")
    assert not cues.found_in("we talked one two three four before")


def test_a_gap_is_up_to_eight_characters_in_chinese() -> None:
    cues = Cues.of(["我们...聊过"])
    assert cues.found_in("我们聊过")
    assert cues.found_in("我们一二三四五六七八聊过")
    assert not cues.found_in("我们一二三四五六七八九聊过")


def test_words_are_whole_in_latin_cues() -> None:
    cues = Cues.of(["i told you"])
    assert cues.found_in("“I told you,” she said")
    assert not cues.found_in("i told young people")
    assert not cues.found_in("Naomi told you")


def test_an_application_may_add_its_own() -> None:
    cues = load_cues("amnesia", ("te lo dije", "已经...讲了"))
    assert cues.found_in("¡Ya te lo dije!")
    assert cues.found_in("这个已经跟客服讲了")
    assert cues.found_in("you forgot")


def test_comments_and_blank_lines_are_no_cues() -> None:
    assert not Cues.of(["# hello", "", "  ", "tea"]).found_in("hello")
    for none in ([], ["# only a comment"], ["", "  "]):
        with pytest.raises(ValueError, match="at least one phrase"):
            Cues.of(none)


@each_row("phrase", ["a.b", "what? (really)", "[x]", "c++", "a|b", "\\d"])
def test_a_phrase_is_no_pattern(phrase: str) -> None:
    cues = Cues.of([phrase])
    assert cues.found_in(f"so {phrase} it is")
    assert not cues.found_in("zzz 7")


def test_case_marks_and_spaces_count_for_nothing() -> None:
    assert normalize("  Don’t -- you,  REMEMBER?! ") == "don't you remember"
