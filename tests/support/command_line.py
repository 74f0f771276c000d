"""Runs the command line in this process; fixtures that `app/tests/cli` lends its tests."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from topicloom_app.cli import main, program
from topicloom_app.cli.words import wants_chinese


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]

_get_english_command = cache(get_command)
"""Typer needs a tenth of a second for all commands. Chinese is written into what it makes."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `topicloom --folder <tmp>/sessions ...`, with `stdin` piped in."""
    for name in [n for n in os.environ if n.startswith("TOPICLOOM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TOPICLOOM_FSYNC", "false")

    def command(*arguments: str, stdin: str = "", folder: Path | None = None) -> Outcome:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        chinese = wants_chinese(arguments, os.environ)
        monkeypatch.setattr(
            program, "get_command", get_command if chinese else _get_english_command
        )
        with pytest.raises(SystemExit) as end:
            main(["--folder", str(folder or tmp_path / "sessions"), *arguments])
        said = capsys.readouterr()
        return Outcome(int(end.value.code or 0), said.out, said.err)

    return command


def read_rows(run: Run, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    """What a command prints with --json, and nothing else."""
    done = run(*arguments, "--json")
    assert (done.code, done.err) == (code, "")
    return [json.loads(line) for line in done.out.splitlines()]


_TALK = (
    ("kitchen", "The oak worktop of the kitchen costs {n}40 euros at Berger's"),
    ("kitchen", "Berger delivers the kitchen worktop in week {n}"),
    ("running", "Today I ran {n} kilometres around the lake for the half marathon"),
    ("running", "My shin hurts after running, {n} days of rest for the marathon"),
)


_replayed: dict[tuple[str, ...], dict[Path, bytes]] = {}


def replay_recording(run: Run, recording: Path, *options: str) -> None:
    """Have `run` a session `talk` of the recording, without questions, in a window of 1,000.

    What was replayed once in the same way is copied.
    """
    folder = recording.parent / "sessions"
    for path, content in _replayed.get(options, {}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if options not in _replayed:
        given = ("--session", "talk", "--no-questions", "--window", "1000", *options)
        assert run("replay", str(recording), *given).code == 0
        files = [path for path in folder.rglob("*") if path.is_file()]
        _replayed[options] = {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A small recording: 32 messages of two topics over eight weeks, with questions."""
    messages: list[dict[str, Any]] = []
    for week in range(4):
        for place, (_, text) in enumerate(_TALK):
            number, day = len(messages), 7 * week + place + 1
            time = f"2026-03-{day:02}T09:00:00+01:00"
            said = text.format(n=week + 1) + ", which is worth a long remark" * 6
            messages += [
                {"id": f"a{number}", "role": "user", "speaker": "Yue", "text": said, "time": time},
                {"id": f"a{number + 1}", "role": "assistant", "text": "Noted.", "time": time},
            ]
    questions = [
        question("q1", "What does the oak worktop cost at first?", "140", ["a0"]),
        question("q2", "How far around the lake at first?", "1", ["a4"], asked_at="a8"),
        question("q3", "And with evidence after that?", "4", ["a30"], asked_at="2026-03-09"),
    ]
    return write(
        tmp_path / "talk.jsonl", [{"id": "talk", "messages": messages, "questions": questions}]
    )


def question(
    id: str, text: str, answer: str, evidence: Sequence[str], asked_at: str | None = None
) -> dict[str, Any]:
    """A question as a recording has it."""
    return {
        "id": id,
        "question": text,
        "answer": answer,
        "evidence": list(evidence),
        "asked_at": asked_at,
    }


def write(path: Path, rows: Sequence[object]) -> Path:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def assert_one_line(outcome: Outcome, *parts: str) -> None:
    """Checks exit code, form and content of an error."""
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err + outcome.out
    for part in parts:
        assert part in outcome.err
