"""`topicloom demo`: what it shows is what happens, in both languages."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Literal

import pytest
from command_line import Run
from openai_behaviours import Reply
from openai_server import OpenAIServer
from rich.console import Console
from rich.text import Text
from tables import each_row

from topicloom import FileStorage, Memory, Settings, StoredMessage
from topicloom_app import find_sample
from topicloom_app.cli._turn_views import describe_plain_window
from topicloom_app.cli.context import make_context
from topicloom_app.cli.demo import Stage
from topicloom_app.cli.sample import unpack_sample
from topicloom_app.recordings.demonstration import CITATION, load_demonstration
from topicloom_app.recordings.replay import load_first_conversation

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@each_row("language", LANGUAGES)
def test_what_a_recorded_reply_cites_was_said(language: Language) -> None:
    said = load_first_conversation(find_sample(), None).messages
    for question in load_demonstration(language).questions:
        cited = [
            (words, re.sub(r"\D", "", sign)) for words, sign in CITATION.findall(question.reply)
        ]
        assert {f"m{number}" for _, number in cited} == set(question.named)
        assert question.scores.keys() >= set(question.named)
        for words, number in cited:
            message = said[int(number) - 1]
            known = re.findall(r"\d+", f"{message.text} {message.time}")
            assert {n.lstrip("0") for n in known} >= set(re.findall(r"\d+", words)), words


@pytest.mark.slow
@each_row("language", LANGUAGES)
def test_it_shows_what_each_reply_rests_on(run: Run, tmp_path: Path, language: Language) -> None:
    outcome = run("--language", language, "demo")
    assert (outcome.code, outcome.err) == (0, "")
    shown = load_demonstration(language)
    blocks = outcome.out.split("› ")[1:]
    for question, block in zip(shown.questions, blocks, strict=True):
        assert block.startswith(question.question)
        assert {"en": "(recorded)", "zh": "录好的"}[language] in block
        assert ({"en": "A plain window", "zh": "普通的"}[language] in block) == bool(question.named)
        there = re.findall(r"(?:already in the prompt|本来就有)[^\n]*", block)
        for message in question.named:
            assert f"│ {message} " in block or any(message in line for line in there), message
            assert f"[{message}]" in block
    assert not [s for s in shown.suggestions if s in outcome.out]  # nobody is there to be asked
    assert outcome.out.splitlines()[-1].endswith("topicloom ui")
    assert not (tmp_path / "sessions").exists()


@pytest.mark.slow
def test_topics_and_messages_are_counted_once(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    with unpack_sample(make_context(folder, Settings()), find_sample()) as copy:
        topics = len(Memory(FileStorage(copy.folder), find_sample().stem).topics())
        name = find_sample().stem
        assert f"370 messages in {topics} topics" in run("chat", name, folder=copy.folder).out
        listed = run("sessions", folder=copy.folder).out.splitlines()[-1]
        assert listed.split()[1:3] == ["370", str(topics)]
        assert len(run("topics", name, "--json", folder=copy.folder).out.splitlines()) == topics
    told = " ".join(run("demo").out.split())
    assert "370 messages, 2 March 2026 to 7 June 2026" in told
    assert f"in {topics} topics" in told


@pytest.mark.slow
def test_a_model_that_is_set_reads_and_replies_itself(
    run: Run, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    openai_server.otherwise(Reply("<relevance_score>0.1</relevance_score> A rope, I think."))
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:some")
    monkeypatch.setenv("TOPICLOOM_BASE_URL", openai_server.base_url)
    outcome = run("demo")
    assert (outcome.code, outcome.err) == (0, "")
    assert "model openai:some" in outcome.out
    assert outcome.out.count("A rope, I think.") == 3
    assert "recorded" not in outcome.out


def message(seq: int, text: str = "one two three four") -> StoredMessage:
    return StoredMessage(seq=seq, role="user", text=text, time=f"2026-03-0{seq}T09:00:00+01:00")


@each_row(
    ("window", "expected"),
    [
        (10_000, "m1, 1 March 2026: it still has all of this."),
        (12, "m4, 4 March 2026: it has lost all of this."),
        (15, "m3, 3 March 2026: it still has m3, and has lost m1."),
        (1, "m5, 5 March 2026: it has lost all of this."),
    ],
)
def test_what_a_plain_window_still_has_is_counted(window: int, expected: str) -> None:
    messages = [message(n) for n in range(1, 6)]
    told = describe_plain_window(messages, window, [messages[0], messages[2]])
    assert told.endswith(expected)


def test_at_a_terminal_it_ends_as_it_would_be_printed() -> None:
    waits: list[float] = []
    screen = StringIO()
    stage = Stage(
        Console(file=screen, force_terminal=True, width=60, color_system=None), waits.append
    )
    stage.type(Text("What about the rope?"))
    stage.slide(Text("Maeve had one."))
    assert waits
    printed = StringIO()
    plain = Stage(Console(file=printed, width=60), waits.append)
    plain.type(Text("What about the rope?"))
    plain.slide(Text("Maeve had one."))
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    assert lines == ["  What about the rope?", "  │ Maeve had one."]
    for line in lines:
        assert line in screen.getvalue()
