"""`topicloom eval memory`: figures, reviews, and going on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import Run

WINDOWS = ("--budget", "200", "--window", "1000", "--topic-window", "2000")


def test_a_run_with_reviews_and_again(run: Run, recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    given = ("eval", "memory", str(recording), "--out", str(out), *WINDOWS)
    first = run(*given, "--reviews", "daily")
    assert (first.code, first.err) == (0, "")
    assert "talk: reviews archived" in first.out
    assert "quoted when asked for by date" in first.out
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {row["reviews"] for row in rows} == {"daily"}
    assert [row["question"] for row in rows[:3]] == ["q2", "q1", "q3"]
    assert rows[1]["evidence"] == ["a0"]
    again = run(*given, "--reviews", "daily")
    assert "in" in again.out
    assert "already" in again.out
    assert first.out[first.out.index("Evidence recall") :] in again.out
    assert len(out.read_text("utf-8").splitlines()) == len(rows)


def test_rows_of_another_run_in_the_same_file_do_not_count(
    run: Run, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    given = ("eval", "memory", str(recording), "--out", str(out), *WINDOWS)
    run(*given)
    assert "already" not in run(*given, "--reviews", "daily").out
    assert "already" in run(*given).out
