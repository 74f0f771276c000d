"""Commands of other distributions, and of the laboratory when it is not there."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import typer
from tables import each_row

from topicloom import ConfigurationError
from topicloom_app.cli.program import LABORATORY, add_commands


def command_line(*plugins: EntryPoint) -> typer.Typer:
    app = typer.Typer(pretty_exceptions_enable=False)
    add_commands(app, plugins)
    return app


def plugin(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group="topicloom.commands")


@each_row("name", sorted(LABORATORY))
@each_row("arguments", [[], ["--help"], ["memory", "FILE", "--budget", "10"]])
def test_without_the_laboratory_it_is_said_how_to_get_it(name: str, arguments: list[str]) -> None:
    with pytest.raises(ConfigurationError, match=f"`topicloom {name}`.*pip install ./lab"):
        command_line()([name, *arguments], standalone_mode=False)


@pytest.mark.slow
def test_that_costs_one_line_and_the_exit_code_is_2() -> None:
    # No distribution is found, so none adds a command.
    program = (
        "import sys, importlib.metadata as m\n"
        "m.MetadataPathFinder.find_distributions = lambda *a, **k: ()\n"
        "sys.argv = ['topicloom', 'eval', 'memory', 'FILE']\n"
        "from topicloom_app.cli import main\n"
        "main()"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr.startswith("error: `topicloom eval` is part of the laboratory")
    assert said.stderr.count("\n") == 1


def test_an_app_becomes_a_group_and_a_function_a_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = command_line(
        plugin("train", "topicloom_app.cli.app:app"),
        plugin("tune", "topicloom_app.cli.commands.reading:sessions"),
    )
    with pytest.raises(SystemExit):
        app(["--help"])
    shown = capsys.readouterr().out
    assert "train" in shown
    assert "List the sessions of the folder" in shown
    assert "eval" not in shown
