"""`topicloom eval run`, `report` and `misses`."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, assert_one_line, read_rows
from talks import talk, talk_file, toml_file


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A small comparison of two strategies."""
    talk_file(tmp_path / "talks.jsonl", talk(12))
    values = {"files": ["talks.jsonl"], "strategies": ["last", "bm25", "mem0"], "budgets": [60]}
    return toml_file(tmp_path / "small.toml", {**values, "out": tmp_path / "out"})


@pytest.mark.slow
def test_a_run_writes_a_report_and_goes_on(run: Run, config: Path, tmp_path: Path) -> None:
    first = run("eval", "run", str(config))
    assert first.code == 0
    assert "talks: evidence recall at 60 tokens" in first.out
    assert (tmp_path / "out" / "report.md").exists()
    cells = (tmp_path / "out" / "cells.jsonl").read_text()
    assert run("eval", "run", str(config)).code == 0
    assert (tmp_path / "out" / "cells.jsonl").read_text() == cells
    again = run("eval", "run", str(config), "--again", "last")
    assert again.code == 0
    assert len((tmp_path / "out" / "cells.jsonl").read_text()) > len(cells)


def test_a_report_can_be_written_again(run: Run, config: Path, tmp_path: Path) -> None:
    run("eval", "run", str(config))
    (tmp_path / "out" / "report.md").unlink()
    rows = read_rows(run, "eval", "report", str(tmp_path / "out"))
    assert {row["strategy"]: row["questions"] for row in rows} == {"bm25": 3, "last": 3}
    assert (tmp_path / "out" / "report.md").exists()


def test_misses_are_shown_with_what_was_said(run: Run, config: Path, tmp_path: Path) -> None:
    run("eval", "run", str(config))
    out = str(tmp_path / "out")
    shown = run("eval", "misses", out, "--strategy", "last")
    assert shown.code == 0
    assert "3 of 3 questions with something missed" in shown.out
    assert "What did the marathon of visit 1 come to?" in shown.out
    assert "[u1] Yue: The marathon of visit 1" in shown.out
    rows = read_rows(run, "eval", "misses", out, "--strategy", "last")
    assert "u1" in rows[0]["missed"]
    ours = run("eval", "misses", out, "--strategy", "bm25", "--against", "last")
    assert "0 of 3 questions" in ours.out
    assert "of 3" in run("eval", "misses", out, "--strategy", "last", "--budget", "60").out


def test_the_example_is_printed(run: Run) -> None:
    shown = run("eval", "run", "--example")
    assert shown.code == 0
    assert 'files = ["sample"]' in shown.out


OWN = """from topicloom_lab.strategies import Context, Strategy


class Mine(Strategy):
    \"\"\"The very first message.\"\"\"

    def context(self, question, budget):
        return Context((), tuple(m.id for m in self._messages[:1]))
"""


@pytest.mark.slow
def test_a_strategy_of_ones_own(run: Run, config: Path, tmp_path: Path) -> None:
    (tmp_path / "my_strategies.py").write_text(OWN)
    own = "my_strategies:Mine"
    values = {"files": ["talks.jsonl"], "strategies": ["last", own], "budgets": [60]}
    file = toml_file(tmp_path / "own.toml", {**values, "out": tmp_path / "own"})
    outcome = run("eval", "run", str(file))
    assert outcome.code == 0
    assert own in outcome.out.partition("evidence recall")[2]
    assert f"`{own}`: The very first message" in (tmp_path / "own" / "report.md").read_text()
    assert run("eval", "report", str(tmp_path / "own")).code == 0
    for wrong, said in (
        ("my_strategies:Yours", "cannot be loaded"),
        ("bm52", "did you mean 'bm25'"),
    ):
        file = toml_file(tmp_path / "own.toml", {**values, "strategies": [wrong], "out": "x"})
        assert_one_line(run("eval", "run", str(file)), said)


def test_how_far_it_is_stands_on_lines_of_their_own(run: Run, config: Path) -> None:
    lines = run("eval", "run", str(config)).out.splitlines()
    assert any("last at 60: " in line and "1 cell to go, about " in line for line in lines)


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    values = {"files": ["none.jsonl"], "strategies": ["last"], "out": tmp_path / "out"}
    file = toml_file(tmp_path / "none.toml", values)
    assert_one_line(run("eval", "run", str(file)), "none.jsonl cannot be read", "eval fetch")


def test_mistakes_are_said_in_one_line(run: Run, config: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert_one_line(run("eval", "run", str(tmp_path / "none.toml")), "none.toml cannot be read")
    assert_one_line(run("eval", "report", out), "holds no results")
    assert_one_line(run("eval", "run", str(config), "--again", "dense"), "no such strategy")
    run("eval", "run", str(config))
    assert_one_line(run("eval", "misses", out), "holds no results of 'topicloom'")
    talk_file(tmp_path / "talks.jsonl", talk(13))
    assert_one_line(run("eval", "run", str(config)), "another talks.jsonl", "choose another folder")
