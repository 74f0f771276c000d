"""`topicloom doctor`, and warnings at the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import pytest
from command_line import Run
from openai_behaviours import Reply, Request
from openai_server import OpenAIServer
from tables import each_row

READER_CASES = json.loads(
    files("topicloom_app").joinpath("samples", "reader_cases.json").read_text("utf-8")
)


def test_what_is_here_and_works(run: Run, tmp_path: Path) -> None:
    outcome = run("doctor")
    assert outcome.code == 0
    said = " ".join(outcome.out.split())  # where a line ends goes by the folder's name
    for part in ("✓ versions", "langgraph 1.", "✓ folder", "can be written to", "✓ encoder"):
        assert part in said
    assert "no model is set: replies only quote what was said" in said
    assert not list((tmp_path / "sessions").glob(".doctor*"))
    assert max(map(len, outcome.out.splitlines())) <= 100


def test_a_folder_that_cannot_be_used_and_a_model_that_does_not_answer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sessions").mkdir(mode=0o755)
    (tmp_path / "sessions" / "checkpoints.sqlite").write_bytes(b"no database" * 200)
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:some")
    monkeypatch.setenv("TOPICLOOM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("TOPICLOOM_MAX_RETRIES", "0")
    outcome = run("doctor", "--json")
    assert outcome.code == 1
    rows = {row["check"]: row for row in map(json.loads, outcome.out.splitlines())}
    assert [name for name, row in rows.items() if not row["ok"]] == ["folder", "sessions", "model"]
    assert "chmod 700" in rows["folder"]["found"]
    assert "not a database" in rows["sessions"]["found"]
    assert "Connection error" in rows["model"]["found"]


def test_a_model_that_answers(
    run: Run, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    openai_server.then(Reply("Yes."))
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:some")
    monkeypatch.setenv("TOPICLOOM_BASE_URL", openai_server.base_url)
    assert "✓ model     openai:some answered in " in run("doctor").out


def read_case(request: Request) -> tuple[dict[str, int], str]:
    """The numbers of the messages that a reader is shown, by their texts, and what is asked."""
    said = [str(m["content"]) for m in request["messages"][1:]]
    shown = re.findall(r"^\[m(\d+)\] \w+: (.+)$", "\n".join(said), re.M)
    *topic, (_, asked) = shown
    return {text: int(number) for number, text in topic}, asked


def name_messages(ids: Sequence[int], score: float) -> Reply:
    """A reader's answer."""
    listed = ", ".join(f"m{n}" for n in ids)
    return Reply(
        f"<topic_result>\n<referenced_messages>{listed}</referenced_messages>\n"
        f"<relevance_score>{score}</relevance_score>\n<summary></summary>\n</topic_result>"
    )


def read_rightly(request: Request) -> Reply:
    """Name just what the cases have as right."""
    _, asked = read_case(request)
    (right,) = (c["right"] for t in READER_CASES for c in t["cases"] if c["query"] == asked)
    return name_messages(right, 0.9 if right else 0.0)


def read_sloppily(request: Request) -> Reply:
    """Name what is right, but also two thirds of what has nothing to do with it."""
    shown, asked = read_case(request)
    off_topic = [c for t in READER_CASES for c in t["cases"] if not c["right"]]
    wrong = [c["query"] for c in off_topic][:5]
    return name_messages([*shown.values()], 0.5) if asked in wrong else read_rightly(request)


def read_everything(request: Request) -> Reply:
    """Name the whole topic, whatever is asked."""
    return name_messages([*read_case(request)[0].values()], 1.0)


@pytest.mark.slow
@each_row(
    ("reads", "code", "right", "advice"),
    [
        (read_rightly, 0, "20 of 20 cases right", "set TOPICLOOM_READERS=decide"),
        (read_sloppily, 1, "15 of 20 cases right", "set TOPICLOOM_READERS=advise"),
        (read_everything, 1, "2 of 20 cases right", "name `embedded` as the reader"),
        (lambda _: Reply("What a lovely day!"), 1, "0 answers could be read", "name `embedded`"),
    ],
)
def test_a_model_that_is_tried_as_the_reader(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    openai_server: OpenAIServer,
    reads: Callable[[Request], Reply],
    code: int,
    right: str,
    advice: str,
) -> None:
    openai_server.otherwise(reads)
    monkeypatch.setenv("TOPICLOOM_BASE_URL", openai_server.base_url)
    outcome = run("doctor", "--model", "openai:small", "--json")
    rows = {row["check"]: row for row in map(json.loads, outcome.out.splitlines())}
    assert right in rows["reader"]["found"]
    assert advice in rows["reader"]["found"]
    assert outcome.code == code
    assert {request["model"] for request in openai_server.requests} == {"small"}


@pytest.mark.slow
def test_advice_that_is_followed_is_well(
    run: Run, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    openai_server.otherwise(read_sloppily)
    monkeypatch.setenv("TOPICLOOM_BASE_URL", openai_server.base_url)
    monkeypatch.setenv("TOPICLOOM_READERS", "advise")
    said = run("--language", "zh", "doctor", "--model", "openai:small")
    assert said.code == 0
    assert "20 题读对 15 题" in said.out


@pytest.mark.slow
def test_a_warning_is_one_line(tmp_path: Path) -> None:
    program = (
        f"from topicloom_app.cli import main\nmain(['--folder', {str(tmp_path)!r}, 'sessions'])"
    )
    keys = {
        "TOPICLOOM_UI_KEY": "secret",
        "TOPICLOOM_SERVE_KEYS": "secret",
    }  # no settings, but known
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TOPICLOOM_WINDW": "3000", **keys},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        outcome.stderr == "warning: there is no setting TOPICLOOM_WINDW; did you mean 'window'?\n"
    )


def test_what_prints_does_so_for_programs(run: Run) -> None:
    run("chat", "kept", stdin="My mother arrives on 16 May.\n")
    (listed,) = map(json.loads, run("sessions", "--json").out.splitlines())
    assert (listed["name"], listed["messages"], listed["wrong"]) == ("kept", 2, "")
    report = json.loads(run("review", "kept", "--dry-run", "--json").out)
    assert (report["session"], report["dry_run"], report["changes"]) == ("kept", True, [])
    (reflected,) = map(json.loads, run("reflect", "kept", "--force", "--json").out.splitlines())
    assert (reflected["read"], reflected["upto"]) == (2, 2)
