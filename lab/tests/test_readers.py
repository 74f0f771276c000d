"""Simulated readers: ideal ones find all evidence, noisy ones err alike, rubbish is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.language_models import FakeListChatModel
from tables import each_row

from topicloom import (
    Call,
    ConfigurationError,
    Reader,
    Reading,
    ReadRequest,
    Settings,
    StoredMessage,
    Topic,
    TopicWindow,
)
from topicloom.effects import run_step
from topicloom.lab import Chat, ChatReader, PrefixMeter
from topicloom.roles.calls import ask_first
from topicloom.roles.reader import EmbeddedReader
from topicloom_app import load_conversations
from topicloom_app.recordings.conversations import Question
from topicloom_lab.memory import MemoryEvaluation, MemoryRow
from topicloom_lab.readers import RUBBISH, ReaderChoice, summarize_said

WORKTOP = Question(id="q1", question="What does the oak worktop cost at first?", evidence=("a0",))
LAKE = Question(
    id="q2", question="How far around the lake at first?", evidence=("a4",), asked_at="a8"
)
VAGUE = Question(id="q3", question="You forgot what I told you!", evidence=("a2", "a6"))
"""No word of it leads to its evidence: only a router that knows does."""


def rows_of(
    recording: Path, folder: Path, readers: str, questions: Sequence[Question] = (WORKTOP, LAKE)
) -> list[MemoryRow]:
    (talk,) = load_conversations(recording)
    # Few topics are awake, so that a router has something to wake.
    settings = Settings.model_validate({"activation": {"floor": 1, "usual": 4, "ceiling": 4}})
    evaluation = MemoryEvaluation(
        budgets=(400,),
        recent=0,
        window=1_000,
        topic_window=4_000,
        readers=ReaderChoice.parse(readers),
        settings=settings,
    )
    asked = talk.model_copy(update={"questions": tuple(questions)})
    return [e for e in evaluation.run(asked, folder) if isinstance(e, MemoryRow)]


@pytest.mark.slow
def test_ideal_readers_and_routers_find_all_evidence(recording: Path, tmp_path: Path) -> None:
    rows = rows_of(recording, tmp_path / "s", "ideal", (WORKTOP, LAKE, VAGUE))
    assert [row.question for row in rows] == ["q2", "q1", "q3"]
    assert all(set(row.evidence) <= set(row.message_ids) for row in rows)
    assert [row.calls.get("router", 0) for row in rows] == [0, 0, 1]
    assert not any(row.failed for row in rows)
    assert [row.summed_up for row in rows] == [True, True, True]


@pytest.mark.slow
def test_noisy_readers_err_alike_in_every_run(recording: Path, tmp_path: Path) -> None:
    rows = rows_of(recording, tmp_path / "one", "noisy:1")
    assert rows == rows_of(recording, tmp_path / "two", "noisy:1")
    assert any(set(row.message_ids) != set(row.evidence) for row in rows)
    assert sum(row.failed.get("reader", 0) for row in rows) > 0


@pytest.mark.slow
def test_readers_that_are_never_wrong_are_ideal(recording: Path, tmp_path: Path) -> None:
    (row,) = rows_of(recording, tmp_path / "s", "noisy:0", (WORKTOP,))
    assert (row.recall, row.failed) == (1.0, {})


@pytest.mark.slow
def test_silent_readers_answer_and_name_nothing(recording: Path, tmp_path: Path) -> None:
    silent = rows_of(recording, tmp_path / "one", "silent", (WORKTOP, VAGUE))
    assert not any(row.failed for row in silent)
    assert all(row.calls["reader"] for row in silent)
    assert [row.summed_up for row in silent] == [None, None]
    ideal = rows_of(recording, tmp_path / "two", "ideal", (VAGUE,))
    assert silent[1].recall < ideal[0].recall


class TestSummaries:
    def test_they_hold_the_sentences_that_the_question_is_about(self) -> None:
        texts = [
            "Hello again. " * 30 + "The oak worktop costs 140 euros. " + "What a day. " * 30,
            "Anna brings the oak oil. " + "Nothing else happened. " * 30,
        ]
        found = summarize_said(texts, "What does the oak worktop cost, and who brings the oil?")
        assert "The oak worktop costs 140 euros." in found
        assert "Anna brings the oak oil." in found
        assert len(found) <= 400

    def test_a_sentence_that_is_too_long_ends_with_a_whole_word(self) -> None:
        found = summarize_said(["worktop " * 200], "The worktop?")
        assert 380 < len(found) <= 400
        assert set(found.split()) == {"worktop"}

    def test_many_messages_share_the_room(self) -> None:
        texts = [f"Day {n}: we walked around the lake and saw the boats." for n in range(50)]
        assert len(summarize_said(texts, "the lake")) <= 400

    def test_of_nothing_there_is_nothing(self) -> None:
        assert summarize_said([], "the lake") == ""


def read(answer: str) -> tuple[tuple[Reading, ...] | None, tuple[Reading, ...], list[Call]]:
    """What a reader that gives this answer and its stand-in hand over, and the stand-in alone."""
    text = "The worktop costs 140 euros."
    messages = [StoredMessage(id="m1", seq=1, role="user", text=text, time="2026-03-01T09:00:00Z")]
    request = ReadRequest(
        "s",
        [TopicWindow(Topic(id="t1", name="Kitchen"), messages, 0.8)],
        messages,
        "The price?",
        "en",
        {"m1": 0.8},
    )
    chat = Chat.of(FakeListChatModel(responses=[answer]), PrefixMeter())
    roles: list[Reader] = [ChatReader(chat), EmbeddedReader()]
    calls: list[Call] = []
    reading = run_step(ask_first("reader", roles, request, calls))
    return reading, roles[-1].call(request).value, calls


@each_row("kind", RUBBISH["reader"])
def test_rubbish_is_replaced_by_the_embedded_reading(kind: str) -> None:
    reading, embedded, calls = read(RUBBISH["reader"][kind])
    assert reading == embedded
    assert [quote.id for reading in embedded for quote in reading.quotes] == ["m1"]
    assert [bool(call.failure) for call in calls] == [True, False]


@pytest.mark.slow
def test_of_garbage_no_answer_is_used(recording: Path, tmp_path: Path) -> None:
    rows = rows_of(recording, tmp_path / "s", "garbage", (WORKTOP, LAKE, VAGUE))
    failed = sum(row.failed.get("reader", 0) for row in rows)
    assert 2 * failed == sum(row.calls["reader"] for row in rows) > 0


@each_row("text", ["embedded", "ideal", "silent", "garbage", "noisy:0.2", "noisy:1"])
def test_readers_are_named_as_they_are_asked_for(text: str) -> None:
    assert str(ReaderChoice.parse(text)) == text
    assert ReaderChoice.parse("noisy:.20") == ReaderChoice.parse("noisy:0.2")


@each_row(
    "text", ["", "Ideal", "noisy", "noisy:", "noisy:1.5", "noisy:-1", "noisy:nan", "ideal:0.2"]
)
def test_other_readers_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="there are embedded, ideal, noisy:SHARE"):
        ReaderChoice.parse(text)
