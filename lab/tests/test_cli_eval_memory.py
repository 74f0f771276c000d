"""`topicloom eval memory`: figures, reviews, and going on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, assert_one_line

WINDOWS = ("--budget", "200", "--window", "1000", "--topic-window", "2000")


@pytest.mark.slow
def test_a_run_with_reviews_and_again(run: Run, recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    given = ("eval", "memory", str(recording), "--out", str(out), *WINDOWS)
    first = run(*given, "--reviews", "daily")
    assert (first.code, first.err) == (0, "")
    assert "talk: reviews archived" in first.out
    assert "quoted when asked for by date" in first.out
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {row["reviews"] for row in rows} == {"daily"}
    assert [row["question"] for row in rows[:3]] == ["q2", "q3", "q1"]
    assert rows[2]["evidence"] == ["a0"]
    for row in rows[:3]:
        missing = set(row["evidence"]) - set(row["message_ids"])
        assert set(row["lost"]) == missing, "for each that is missing there is a reason"
    assert rows[1]["lost"] == {"a30": "not found"}, "it was said after the question"
    assert "Missing: 0.333 not found, 0.000 no room, 0.000 not needed." in first.out
    again = run(*given, "--reviews", "daily")
    assert "in" in again.out
    assert "already" in again.out
    assert first.out[first.out.index("Evidence recall") :] in again.out
    assert len(out.read_text("utf-8").splitlines()) == len(rows)


@pytest.mark.slow
def test_rows_of_another_run_in_the_same_file_do_not_count(
    run: Run, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    given = ("eval", "memory", str(recording), "--out", str(out), *WINDOWS)
    run(*given)
    assert "already" not in run(*given, "--reviews", "daily").out
    assert "already" in run(*given).out


@pytest.mark.slow
def test_results_are_of_one_kind_of_readers(run: Run, recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    given = ("eval", "memory", str(recording), "--out", str(out), *WINDOWS, "--readers")
    first = run(*given, "garbage")
    assert "Readers: garbage, " in first.out
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {row["readers"] for row in rows} == {"garbage"}
    failed = sum(row["failed"].get("reader", 0) for row in rows)
    assert f"{failed} could not be parsed" in first.out
    again = run(*given, "garbage")
    assert first.out[first.out.index("Evidence recall") :] in again.out
    before = out.read_bytes()
    assert_one_line(run(*given, "ideal"), "rows.jsonl holds results of garbage readers", "another")
    assert_one_line(run(*given, "noisy:2"), "no readers 'noisy:2'")
    assert out.read_bytes() == before


@pytest.mark.slow
def test_a_run_that_was_killed_while_it_wrote_goes_on(
    run: Run, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    given = ("eval", "memory", str(recording), "--out", str(out), *WINDOWS)
    first = run(*given)
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    for left in (lines[0], lines[0] + lines[1][:-20]):
        out.write_bytes(left)
        again = run(*given)
        assert "already" not in again.out
        assert first.out[first.out.index("Evidence recall") :] in again.out
        assert out.read_bytes() == lines[0] + whole
        assert "already" in run(*given).out


@pytest.mark.parametrize("held", [b"no row\n", b"\xff\n", b"no end", None])
def test_what_is_no_file_of_results_is_named(
    run: Run, recording: Path, tmp_path: Path, held: bytes | None
) -> None:
    out = tmp_path / "rows.jsonl"
    if held is None:
        out.mkdir()
    else:
        out.write_bytes(held)
    shown = run("eval", "memory", str(recording), "--out", str(out), *WINDOWS)
    assert_one_line(shown, str(out), "choose another file")


def test_results_that_name_no_readers_are_of_the_embedded_ones(
    run: Run, recording: Path, tmp_path: Path
) -> None:
    row: dict[str, object] = {
        "conversation": "talk",
        "category": "",
        "evidence": ["a0"],
        "lost": {},
    }
    row |= {"message_ids": ["a0"], "tokens": 90, "calls": {"reader": 1}, "reviews": "none"}
    row |= {
        "budget": 200,
        "recent": None,
        "window": 1000,
        "topic_window": 2000,
        "readers_say": "decide",
    }
    out = tmp_path / "rows.jsonl"
    rows = [json.dumps(row | {"question": name}) for name in ("q1", "q2", "q3")]
    out.write_text("".join(f"{line}\n" for line in rows), "utf-8")
    said = run("eval", "memory", str(recording), "--out", str(out), *WINDOWS).out
    assert "already" in said
    assert "Readers: embedded, 3 calls" in said


def test_the_sample_that_ships_is_known_by_its_name(run: Run) -> None:
    windows = ("--window", "2000", "--topic-window", "2000")
    shown = run("eval", "caching", "sample", "--turns", "1", "--layout", "ledger", *windows)
    assert (shown.code, shown.err) == (0, "")
    assert "lake_house" in shown.out
