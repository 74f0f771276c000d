"""`topicloom doctor`, and warnings at the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run
from openai_behaviours import Reply
from openai_server import OpenAIServer


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
