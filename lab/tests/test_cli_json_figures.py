"""`--json` of the commands that print tables: each row of a table is a line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import Run, run as run
from rich.console import Console
from rich.table import Table

from topicloom_lab.cli.app import eval_app
from topicloom_lab.cli.output import open_figures, read_rows


def test_a_table_as_rows() -> None:
    table = Table(title="Figures: a.jsonl")
    for head in ("", "recall", "cost", "tokens", "cost"):
        table.add_column(head)
    table.add_row("all", "0.970", "12%", "3,903", "-")
    assert list(read_rows(table)) == [
        {"table": "Figures: a.jsonl", "of": "all", "recall": 0.97}
        | {"cost": "12%", "tokens": 3903, "tokens: cost": None}
    ]


def test_nothing_but_rows_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("conversations", title="Topics")
    table.add_row("60")
    console: Console = open_figures(as_json=True)
    console.print("a remark", table)
    console.print("Readers: embedded")
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"table": "Topics", "conversations": 60}
    ]


def test_every_command_of_figures_takes_it() -> None:
    silent = {"fetch", "convert", "generate"}
    """They write files, and say in a sentence where."""
    commands: Any = {
        c.callback.__name__: c.callback for c in eval_app.registered_commands if c.callback
    }
    without = {name for name, made in commands.items() if "json" not in made.__annotations__}
    assert without == silent


@pytest.mark.slow
def test_the_rows_of_an_evaluation(run: Run) -> None:
    done = run("eval", "arbiter", "--json")
    assert (done.code, done.err) == (0, "")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert rows
    kinds = ("hard", "easy", "both")
    assert {(row["table"], "policy" in row) for row in rows} == {
        ("AUC of telling what goes on", False),
        *((f"What is split, looking back: {kind}", True) for kind in kinds),
    }


def test_an_error_is_one_line_and_nothing_else(run: Run) -> None:
    done = run("eval", "threads", "nothing.jsonl", "--json")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
