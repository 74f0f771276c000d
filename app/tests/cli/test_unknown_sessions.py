"""Each command that takes a session says alike that it is not there, and how to begin it."""

from __future__ import annotations

import re

import pytest
from command_line import Run
from tables import each_row
from typer.main import get_command

from topicloom_app.cli.app import app

MORE = {
    "search": ["x"],
    "quote": ["m1"],
    "memory": ["--out", "made"],
    "purge": ["--message", "m1", "--yes"],
    "delete": ["--yes"],
    "ui": ["--no-browser", "--port", "0"],
    "topic rename": ["t1", "Cats"],
    "topic move": ["m1", "t1"],
    "topic split": ["t1", "m1", "Cats"],
    "topic merge": ["t1", "t2"],
    "topic pin": ["t1"],
    "topic archive": ["t1"],
    "topic restore": ["t1"],
}
"""What a command needs beside the name."""
OTHERS = {"chat", "demo", "import", "replay", "serve", "sessions", "doctor", "key", "person"}
"""They begin a session, or take none."""


def list_commands() -> list[str]:
    found = list[str]()
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", {})
        found += [f"{name} {inner}" for inner in below] or [name]
    laboratory = {"eval", "train", "tune"}
    return sorted(name for name in found if name.split()[0] not in OTHERS | laboratory)


@pytest.fixture
def run_beside_cats(run: Run) -> Run:
    """Runs a command where there is a session `cats`."""
    run("chat", "cats", stdin="The cat is called Tom.\n")
    return run


@pytest.mark.slow
@each_row("command", list_commands())
def test_an_unknown_session_is_said_with_those_that_exist(
    run_beside_cats: Run, command: str
) -> None:
    run = run_beside_cats
    outcome = run(*command.split(), "nosuch", *MORE.get(command, []))
    assert outcome.code == 2
    said = re.fullmatch(
        r"error: there is no session 'nosuch' in \S+ \(there: cats\)\."
        r" To begin it: topicloom chat nosuch\n",
        outcome.err,
    )
    assert said, outcome.err
    assert "http" not in outcome.out
    assert run("sessions", "--json").out.count("\n") == 1
