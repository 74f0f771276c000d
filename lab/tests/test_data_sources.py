"""Where conversations come from, and where in them a question is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import each_row
from talks import talk, talk_file

from topicloom import InputError, NotAConversationError
from topicloom_app import RecordedMessage
from topicloom_app.recordings.conversations import Question
from topicloom_lab.comparison.config import fingerprint, load_source, name_of, place_of


def test_a_file_beside_the_configuration(tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.jsonl", talk(), talk(id="other"))
    assert [c.id for c in load_source("talk.jsonl", tmp_path)] == ["talk", "other"]
    assert name_of("some/talk.jsonl.xz") == "talk"


def test_the_recording_that_ships() -> None:
    (sample,) = load_source("sample")
    assert sample.questions


def test_a_generator_by_its_options() -> None:
    spec = "sniah:tokens=2000,depths=2,seed=3"
    first = next(load_source(spec))
    assert first.questions
    assert first == next(load_source(spec))
    assert name_of(spec) == spec
    with pytest.raises(InputError):
        load_source("sniah:tokens=many")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotAConversationError, match="cannot be read"):
        next(load_source("nothing.jsonl", tmp_path))


def test_a_fingerprint_changes_with_the_file(tmp_path: Path) -> None:
    talk_file(tmp_path / "talk.jsonl", talk())
    before = fingerprint("talk.jsonl", tmp_path)
    talk_file(tmp_path / "talk.jsonl", talk(25))
    assert fingerprint("talk.jsonl", tmp_path) != before
    assert fingerprint("sniah:seed=1") != fingerprint("sniah:seed=2")


@each_row(
    ("asked_at", "place"),
    [("b", 1), ("2026-03-02T12:00:00", 2), ("2026-03-09", 3), ("nobody knows", 3), (None, 3)],
)
def test_a_question_has_its_place(asked_at: str | None, place: int) -> None:
    days = {"a": "2026-03-01", "b": "2026-03-02", "c": "2026-03-03"}
    said = tuple(RecordedMessage(id=i, role="user", text=i, time=d) for i, d in days.items())
    assert place_of(Question(id="q", question="?", asked_at=asked_at), said) == place
