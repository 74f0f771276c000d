"""Help is read in a terminal of 80 columns: whole sentences, no word cut."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from command_line import Run
from rich.cells import cell_len
from tables import each_row
from typer.main import get_command

from topicloom_app.cli import program
from topicloom_app.cli.app import app


def list_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from list_commands(below, (*path, name))


program._add_plugins()
COMMAND = get_command(app)
PATHS = list(list_commands(COMMAND))


def find_command(path: tuple[str, ...]) -> Any:
    command: Any = COMMAND
    for name in path:
        command = command.commands[name]
    return command


def list_texts(path: tuple[str, ...]) -> list[str]:
    """The help of a command and of what it takes, each as one line."""
    command = find_command(path)
    given = [p.help for p in command.params if not p.hidden]
    parts = [part for text in (command.help, command.epilog, *given) for part in _split(text)]
    return [" ".join(part.split()) for part in parts]


def _split(text: str | None) -> list[str]:
    return text.split("\n\n") if text else []


@each_row("path", PATHS)
def test_help_is_whole_sentences(path: tuple[str, ...]) -> None:
    for text in list_texts(path):
        assert re.fullmatch(r"[A-Z'`].*\.", text), text


@each_row("path", PATHS)
def test_arguments_have_names_in_capitals_and_typer_adds_the_dots(path: tuple[str, ...]) -> None:
    for parameter in find_command(path).params:
        if parameter.param_type_name == "argument":
            assert parameter.metavar, parameter.name
            assert re.fullmatch(r"(\[[A-Z]+\] )?[A-Z]+", parameter.metavar)


@pytest.mark.slow
@each_row("path", PATHS)
def test_help_fits_eighty_columns(
    run: Run, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    chinese = run("--language", "zh", *path, "--help").out
    assert max(map(cell_len, chinese.splitlines())) <= 80
    shown = run("--language", "en", *path, "--help").out
    assert max(map(len, shown.splitlines())) <= 80
    words = set(re.sub("[│`]", " ", shown).split())
    for text in list_texts(path):
        assert not set(text.replace("`", "").split()) - words
