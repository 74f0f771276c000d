"""`topicloom eval retrieval`: places, ties, and files that hold something else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, assert_one_line, read_rows

from topicloom import count_budget_tokens
from topicloom.lab import HashingEmbedder
from topicloom_lab.retrieval import WAYS, evaluate_retrieval, load_retrieval, place_of

DOCS = ["green tea steeps for three minutes", "the chain slips off", "妈妈对花生过敏"]


def test_half_of_those_that_score_the_same_go_before() -> None:
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    assert place_of(scores, [0]) == 1
    assert place_of(scores, [2]) == 3
    assert place_of(scores, [4, 1]) == 3


def test_shared_words_are_found(tmp_path: Path) -> None:
    file = tmp_path / "set.json"
    queries = [["how long does tea steep", [0]], ["谁对花生过敏", [2]]]
    file.write_text(json.dumps({"docs": DOCS, "queries": queries}), "utf-8")
    done: list[int] = []
    found = evaluate_retrieval(load_retrieval(file), HashingEmbedder(), done.append)
    assert set(found) == set(WAYS)
    assert all(found[way].mrr == found[way].recall == 1 for way in ("words", "encoder", "both"))
    assert done[-1] == 5


def test_the_help_shows_the_form_of_a_file(run: Run) -> None:
    shown = " ".join(run("eval", "retrieval", "--help").out.split())
    assert '{"docs": [text, ...], "queries": [[text, [index of a right text, ...]], ...]}' in shown


def test_the_command_measures_retrieval(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "set.json"
    file.write_text(json.dumps({"docs": DOCS, "queries": [["tea", [0]]]}), "utf-8")
    outcome = run("eval", "retrieval", str(file), "--encoder", "hashing")
    assert outcome.code == 0, outcome.err
    assert "1.000 (1.00; " in " ".join(outcome.out.split())
    rows = read_rows(run, "eval", "retrieval", str(file), "--encoder", "hashing")
    assert [row["way"] for row in rows] == list(WAYS)
    assert rows[0]["mrr"] == 1.0
    costs = list(map(count_budget_tokens, DOCS))
    assert rows[0]["shown"] == sum(costs)
    assert rows[0]["precision"] == pytest.approx(costs[0] / sum(costs))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "no retrieval set"),
        ('{"docs": [], "queries": []}', "docs"),
        ('{"docs": ["a"], "queries": [["b", [1]]]}', "names text 1, there are 1"),
        ('{"docs": ["a"], "queries": [["b", []]]}', "queries"),
    ],
)
def test_what_is_no_such_file(run: Run, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "set.json"
    file.write_text(text, "utf-8")
    outcome = run("eval", "retrieval", str(file))
    assert_one_line(outcome, said)
