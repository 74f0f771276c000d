"""`topicloom eval segmentation`, `eval threads` and `train` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Outcome, Run, assert_one_line

TEA, BIKE = "how long does green tea steep", "my bicycle chain keeps slipping off"


@pytest.fixture
def dialogues(tmp_path: Path) -> Path:
    file = tmp_path / "dialogues.jsonl"
    texts = [TEA, "three minutes", TEA, "no longer", BIKE, "oil it", BIKE, "tighten it"]
    utterances = [
        {"role": "user" if i % 2 == 0 else "agent", "text": t} for i, t in enumerate(texts)
    ]
    row = {"id": "d1", "lang": "en", "utterances": utterances, "segments": [4, 4]}
    file.write_text(json.dumps(row) + "\n", "utf-8")
    return file


@pytest.fixture
def threads(tmp_path: Path) -> Path:
    file = tmp_path / "threads.jsonl"
    messages = [
        {
            "id": i,
            "time": None,
            "speaker": "user" if i % 2 == 0 else "assistant",
            "text": t,
            "thread": k,
        }
        for i, (t, k) in enumerate([(TEA, 0), ("three minutes", 0), (BIKE, 1), ("oil it", 1)])
    ]
    file.write_text(json.dumps({"id": "c1", "lang": "en", "messages": messages}) + "\n", "utf-8")
    return file


def rows(out: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["online", "retrospective"])
@pytest.mark.parametrize("granularity", ["auto", "fine", "coarse"])
def test_the_command_measures_segmentation(
    run: Run, dialogues: Path, tmp_path: Path, mode: str, granularity: str
) -> None:
    out = tmp_path / "results" / "out.jsonl"
    options = ["--mode", mode, "--granularity", granularity, "--out", str(out)]
    outcome = run("eval", "segmentation", str(dialogues), *options)
    assert outcome.code == 0, outcome.err
    assert "WindowDiff" in outcome.out
    assert "In sample" not in outcome.out
    (row,) = rows(out)
    assert row["id"] == "d1"
    boundaries = row["boundaries"]
    assert isinstance(boundaries, list)
    assert len(boundaries) == 8
    assert boundaries[-1] == 0


def test_the_command_measures_threads(run: Run, threads: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    outcome = run("eval", "threads", str(threads), "--window", "2000", "--out", str(out))
    assert outcome.code == 0, outcome.err
    assert "ARI" in outcome.out
    assert "as they come" in outcome.out
    assert "after they are moved" in outcome.out
    (row,) = rows(out)
    assert row["id"] == "c1"
    assert isinstance(row["threads"], list)
    assert len(row["threads"]) == 4


@pytest.mark.parametrize("kind", ["segmentation", "threads"])
def test_what_is_wrong_with_a_file(run: Run, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "bad.jsonl"
    assert_one_line(run("eval", kind, str(file)), "bad.jsonl")
    file.write_text("\n")
    assert_one_line(run("eval", kind, str(file)), "bad.jsonl", "is empty")
    file.write_text('{"id": "x"}\n', "utf-8")
    assert_one_line(run("eval", kind, str(file)), "bad.jsonl", "line 1")


def test_what_is_wrong_with_weights(run: Run, dialogues: Path, tmp_path: Path) -> None:
    outcome = run("eval", "segmentation", str(dialogues), "--weights", str(tmp_path / "none.npz"))
    assert_one_line(outcome, "none.npz")


def test_results_that_cannot_be_written(run: Run, dialogues: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    outcome: Outcome = run("eval", "segmentation", str(dialogues), "--out", str(blocked / "x"))
    assert_one_line(outcome, "cannot be written")


def test_nothing_to_train_on(run: Run, tmp_path: Path) -> None:
    assert_one_line(run("train", "boundary", str(tmp_path), "--out", str(tmp_path / "w.npz")))
    assert not (tmp_path / "w.npz").exists()
