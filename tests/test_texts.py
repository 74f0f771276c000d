"""Templates with values: in English at once, in another language later."""

from __future__ import annotations

import pickle
from copy import copy
from pathlib import Path

import pytest
from tables import each_row

from topicloom import InputError, ReplyError, TopicLoomError
from topicloom.errors import suggest
from topicloom.hosting import FilledText
from topicloom.texts import join_texts


def test_a_filled_text_is_the_sentence_and_knows_its_template() -> None:
    text = FilledText("there is no session {name!r} in {folder}", name="work", folder=Path("s"))
    assert text == "there is no session 'work' in s"
    assert text.template == "there is no session {name!r} in {folder}"
    assert text.values == {"name": "work", "folder": "s"}


@each_row("text", ['{"id": 1}', "{name}", "}{", ""])
def test_a_text_without_values_is_taken_as_it_is(text: str) -> None:
    assert FilledText(text) == text == FilledText(text).template
    assert str(InputError(text)) == text


def test_values_are_not_read_as_templates() -> None:
    assert FilledText("not {what}", what="{name}") == "not {name}"


def test_a_value_of_any_kind_is_shown_in_another_language_as_in_english() -> None:
    text = FilledText("not {value!r:.9}, {value}", value=["a", "b"])
    assert text == "not ['a', 'b', ['a', 'b']"
    assert text.template.format(**text.values) == text
    assert not isinstance(text.values["value"], list)


def test_texts_that_are_joined_keep_their_templates() -> None:
    text = join_texts([FilledText("no {name}", name="tea"), "nothing {else}"])
    assert text == "no tea; nothing {else}"
    assert isinstance(text, FilledText)
    assert [getattr(part, "template", part) for part in text.values.values()] == [
        "no {name}",
        "nothing {else}",
    ]
    assert join_texts([]) == ""


def test_an_error_says_its_sentence_and_keeps_the_template() -> None:
    error = InputError("no topic {topic!r}{meant}", topic="t9", meant=suggest("t9", ["t91"]))
    assert str(error) == "no topic 't9'; did you mean 't91'?"
    said = error.args[0]
    assert isinstance(said, FilledText)
    assert said.template == "no topic {topic!r}{meant}"
    assert isinstance(said.values["meant"], FilledText)
    assert str(TopicLoomError()) == ""


@pytest.mark.parametrize("again", [copy, lambda error: pickle.loads(pickle.dumps(error))])  # noqa: S301
def test_an_error_survives_being_copied_and_pickled(again: object) -> None:
    error = ReplyError("{model} is out", model="gpt {x}", reason="busy", status=503)
    other = again(error)  # type: ignore[operator]
    assert str(other) == "gpt {x} is out"
    assert (other.reason, other.status, other.final) == ("busy", 503, False)
    assert other.args[0].template == "{model} is out"
    assert other.args[0].values == {"model": "gpt {x}"}
