"""The report of a comparison: means, leads, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from matplotlib.figure import Figure

from topicloom_lab.comparison.figures import apart, draw_cost, draw_recall
from topicloom_lab.comparison.measures import QuestionResult
from topicloom_lab.comparison.report import lead_table, recall_table, report_text, write_report
from topicloom_lab.comparison.results import (
    Cell,
    Lead,
    Results,
    Summary,
    best_other,
    recall_lines,
    summaries,
    table,
)


def asked(name: str, found: int, **more: object) -> QuestionResult:
    """A question with four pieces of evidence, some of them found."""
    ids = ("a", "b", "c", "d")
    row = {"question": name, "category": name[0], "evidence": ids, "found": ids[:found]}
    cost = {"answer_in": found > 2, "tokens": 90, "messages": 1, "originals": found}
    return QuestionResult.model_validate(
        {**row, **cost, "seconds": 0.01, "cpu_seconds": 0.01, **more}
    )


def cell(strategy: str, budget: int, *found: int, **more: object) -> Cell:
    """A cell whose questions found so many pieces each."""
    rows = tuple(asked(f"{'xy'[n % 2]}{n}", f) for n, f in enumerate(found))
    base = {"source": "talks.jsonl", "conversation": "one", "strategy": strategy, "asked": rows}
    heard = {"budget": budget, "code": "c0de", "heard": 10, "history": 5_000, "seconds": 0.1}
    return Cell.model_validate({**base, **heard, **more})


CELLS = [
    cell("topicloom", 100, 4, 2, 3, 3, calls={"reader": 8}),
    cell("topicloom", 200, 4, 4, 3, 4),
    cell("everything", 100, 4, 4, 4, 4),
    cell("bm25", 100, 1, 2, 1, 1),
    cell("bm25", 200, 4, 4, 4, 4),
    cell("dense", 100, 0, 0, 0, 0),
    cell("mem0", 100, failure="OSError: full"),
]


class TestSummaries:
    def test_means_are_over_questions(self) -> None:
        ours = summaries(CELLS)[0]
        assert (ours.strategy, ours.budget) == ("topicloom", 100)
        assert ours.recall == 0.75
        assert ours.whole == 0.25
        assert ours.mean_of("oracle") == ours.mean_of("answer_in") == 0.75
        assert ours.calls == {"reader": 2.0}
        assert ours.precision is None

    def test_precision_is_the_share_of_all_tokens_that_is_evidence(self) -> None:
        rows = [asked(f"q{n}", 1, evidence_tokens=held) for n, held in enumerate((9, 27, None))]
        (found,) = summaries([cell("topicloom", 100).model_copy(update={"asked": tuple(rows)})])
        assert found.precision == pytest.approx(36 / 180)
        assert "  topicloom         0.250 (90, 0.200)" in recall_lines(found.cells)

    def test_summaries_average_by_category(self) -> None:
        ours = summaries(CELLS)[0]
        assert ours.by_category() == {"x": 0.875, "y": 0.625}

    def test_failed_cells_take_no_part(self) -> None:
        assert "mem0" not in {s.strategy for s in summaries(CELLS)}

    def test_what_ignores_the_budget_is_not_the_best_other(self) -> None:
        found = summaries(CELLS)
        other = best_other(found[0], found)
        assert other is not None
        assert other.strategy == "bm25"

    def test_a_lead_is_counted_question_by_question(self) -> None:
        found = {(s.strategy, s.budget): s for s in summaries(CELLS)}
        lead = Lead.of(found["topicloom", 100], found["bm25", 100], seed=1)
        assert lead.by == pytest.approx(0.4375)
        assert 0 <= lead.low <= lead.by <= lead.high <= 1
        assert lead == Lead.of(found["topicloom", 100], found["bm25", 100], seed=1)

    def test_lines_for_the_terminal(self) -> None:
        lines = recall_lines(CELLS)
        beside = "(tokens shown, share of them that is evidence)"
        assert f"talks: evidence recall at 100, 200 tokens {beside}" in lines
        assert "  dense             0.000 (90, -)              -" in lines


class TestTables:
    def test_the_best_of_a_budget_is_bold_and_stands_first(self) -> None:
        rows = recall_table(summaries(CELLS)).splitlines()
        assert (
            rows[0] == "| strategy | 100 | all | shown | evidence | 200 | all | shown | evidence |"
        )
        assert rows[2] == "| topicloom | **0.750** | 0.250 | 90 | - | 0.938 | 0.750 | 90 | - |"
        assert rows[3] == "| bm25 | 0.312 | 0.000 | 90 | - | **1.000** | 1.000 | 90 | - |"
        assert rows[-1] == "| everything | 1.000 | 1.000 | 90 | - | - | - | - | - |"

    def test_it_says_where_topicloom_is_behind(self) -> None:
        rows = lead_table(summaries(CELLS), 0).splitlines()
        assert "| bm25 0.312 | +0.438 |" in rows[2]
        assert "ahead" in rows[2]
        assert "| bm25 1.000 | -0.062 |" in rows[3]
        assert "behind" in rows[3]

    def test_a_cell_cannot_break_a_table(self) -> None:
        assert table(["a"], [["x | y\nz"]]).splitlines()[-1] == "| x \\| y z |"


def test_the_report_has_all_its_parts() -> None:
    run = {"seed": 7, "left_out": {"mem0": "mem0 is not installed"}, "versions": {"python": "3"}}
    text = report_text(CELLS, run, ["recall-by-budget.png"])
    assert "![recall by budget](recall-by-budget.png)" in text
    assert (
        "1 conversation of 5,000 tokens on average, 4 questions with evidence: one of them more or"
        in text
    )
    assert "| topicloom | 90 | 1 / 4 |" in text
    assert "one, question x2 (x): 3 of 4 found, missing d" in text
    assert "left out: mem0 is not installed" in text
    assert "one, mem0 at 100: OSError: full" in text
    assert "oracle reader" in text
    assert "seed 7" in text
    assert "c0de" in text


def test_answers_of_a_model_have_a_table() -> None:
    rows = (asked("x", 1, reply="a", exact=True, f1=1.0, judged=None),)
    text = report_text([cell("bm25", 100).model_copy(update={"asked": rows})], {}, [])
    assert "| bm25 | 1.000 | 1.000 | - |" in text


@given(st.lists(st.floats(0, 1), max_size=19).map(sorted))
def test_names_at_the_ends_of_lines_keep_apart(heights: list[float]) -> None:
    moved = apart(heights, 0.05)
    assert all(b - a >= 0.05 - 1e-9 for a, b in pairwise(moved))
    assert all(height <= 1 for height in moved)
    if all(b - a >= 0.05 for a, b in pairwise(heights)):
        assert moved == pytest.approx(heights, abs=1e-9)


@pytest.mark.parametrize("draw", [draw_recall, draw_cost])
def test_the_key_explains_every_stroke(draw: Callable[[Sequence[Summary]], Figure]) -> None:
    figure = draw(summaries(CELLS))
    (key,) = figure.legends
    explained = {(h.get_color(), h.get_marker()) for h in key.get_lines()}
    drawn = {(h.get_color(), h.get_marker()) for axes in figure.axes for h in axes.get_lines()}
    assert drawn <= explained
    assert "the best other" in [text.get_text() for text in key.get_texts()]


def test_a_report_and_its_figures_are_written(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for each in CELLS:
        results.add(each)
    paths = write_report(results)
    assert [p.name for p in paths] == ["report.md", "recall-by-budget.png", "recall-by-cost.png"]
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in paths[1:])
