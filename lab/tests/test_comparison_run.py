"""Running a comparison: every cell once, resumable, whatever a strategy does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from openai_behaviours import Reply, router
from openai_server import OpenAIServer
from talks import talk, talk_file, toml_file

from topicloom import ConfigurationError, NotAConversationError
from topicloom.lab import HashingEmbedder, open_model
from topicloom_lab.comparison.config import EXAMPLE, Comparison, read_comparison
from topicloom_lab.comparison.results import Key, Results
from topicloom_lab.comparison.run import Bench, Trial, open_cells, run_comparison
from topicloom_lab.strategies.catalogue import STRATEGIES, StrategyEntry

BENCH = Bench(HashingEmbedder(256), "c0de")
NAMES = ("last", "bm25", "langchain-summary")


def comparison(folder: Path, **more: object) -> Comparison:
    """Two conversations under three strategies and two budgets."""
    talk_file(folder / "talks.jsonl", talk(12, id="one"), talk(16, id="two"))
    given = {"files": ["talks.jsonl"], "strategies": NAMES, "budgets": [100, 200], "folder": folder}
    return Comparison.model_validate({**given, "out": folder / "out", **more})


def run(wanted: Comparison, again: Sequence[str] = ()) -> list[Key]:
    """Run what is open; the cells that were run."""
    results = Results(wanted.out)
    waiting = open_cells(wanted, results, again)
    return [cell.key for cell in run_comparison(wanted, results, BENCH, waiting)]


class TestRun:
    def test_every_cell_has_every_question(self, tmp_path: Path) -> None:
        wanted = comparison(tmp_path)
        keys = run(wanted)
        assert len(set(keys)) == len(keys) == 2 * 3 * 2
        cells = Results(wanted.out).cells()
        assert set(cells) == set(keys)
        for cell in cells.values():
            assert cell.failure is None
            assert len(cell.asked) == (3 if cell.conversation == "one" else 4)
            assert all(row.tokens <= cell.budget for row in cell.asked)
            assert (cell.heard, cell.code) == (24 if cell.conversation == "one" else 32, "c0de")

    def test_what_is_finished_is_not_run_again(self, tmp_path: Path) -> None:
        wanted = comparison(tmp_path)
        run(wanted)
        assert run(wanted) == []
        more = comparison(tmp_path, budgets=[100, 200, 300], strategies=("last", "bm25"))
        assert [key[-1] for key in run(more)] == [300] * 4

    def test_a_run_that_was_stopped_goes_on(self, tmp_path: Path) -> None:
        wanted = comparison(tmp_path)
        results = Results(wanted.out)
        results.begin({"seed": 0}, ("seed",))
        running = run_comparison(wanted, results, BENCH, open_cells(wanted, results))
        first = [next(running).key for _ in range(5)]
        path = wanted.out / "cells.jsonl"
        path.write_bytes(path.read_bytes() + b'{"source": "talks.js')
        results.begin({"seed": 0}, ("seed",))
        rest = run(wanted)
        assert set(first).isdisjoint(rest)
        assert len(first) + len(rest) == len(Results(wanted.out).cells()) == 12

    def test_a_strategy_can_be_run_again(self, tmp_path: Path) -> None:
        wanted = comparison(tmp_path)
        run(wanted)
        assert {key[2] for key in run(wanted, again=["bm25"])} == {"bm25"}
        assert len(Results(wanted.out).cells()) == 12

    @pytest.mark.slow
    def test_figures_are_the_same_every_time(self, tmp_path: Path) -> None:
        def found(out: str) -> list[object]:
            wanted = comparison(tmp_path, out=tmp_path / out)
            run(wanted)
            cells = Results(wanted.out).cells().values()
            return [(c.key, [(r.found, r.tokens, r.calls) for r in c.asked]) for c in cells]

        assert found("first") == found("second")

    def test_questions_are_chosen_by_the_seed(self, tmp_path: Path) -> None:
        whole = talk(60)
        few = [comparison(tmp_path, questions=3, seed=s).chosen(whole) for s in (1, 1, 2)]
        assert few[0] == few[1] != few[2]
        assert len(few[0]) == 3
        assert [q for q in whole.questions if q in few[0]] == few[0]

    def test_a_question_in_the_middle_knows_nothing_of_what_follows(self, tmp_path: Path) -> None:
        asked = talk(12)
        early = asked.questions[0].model_copy(update={"asked_at": "u4"})
        trial = Trial("t", asked.model_copy(update={"questions": (early,)}), [early], BENCH)
        (cell,) = trial.run(STRATEGIES["everything"], [100])
        assert cell.asked[0].originals == 6


class Broken:
    """A strategy that raises."""

    def feed(self, messages: object) -> dict[str, int]:
        raise RuntimeError("out of order")

    def context(self, question: str, budget: int) -> object:
        raise NotImplementedError

    def close(self) -> None:
        pass


class TestFailures:
    def test_a_strategy_that_raises_costs_its_cells_only(self, tmp_path: Path) -> None:
        recipe = StrategyEntry("last", "place", "raises", lambda _: Broken())  # type: ignore[arg-type,return-value]
        trial = Trial("t", talk(), talk().questions, BENCH)
        cells = trial.run(recipe, [100, 200])
        assert [c.failure for c in cells] == ["RuntimeError: out of order"] * 2
        results = Results(tmp_path)
        for cell in cells:
            results.add(cell)
        assert all(c.failure for c in results.cells().values())

    def test_what_failed_is_run_again(self, tmp_path: Path) -> None:
        wanted = comparison(tmp_path)
        run(wanted)
        cell = next(iter(Results(wanted.out).cells().values()))
        failed = cell.model_copy(update={"failure": "TimeoutError: late", "asked": ()})
        Results(wanted.out).add(failed)
        assert run(wanted) == [cell.key]

    def test_a_file_that_is_no_result_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "cells.jsonl").write_text('{"source": 1}\n')
        with pytest.raises(ConfigurationError, match=r"cells\.jsonl, line 1 is no result"):
            Results(tmp_path).cells()

    def test_results_of_another_run_are_not_mixed_in(self, tmp_path: Path) -> None:
        Results(tmp_path).begin({"seed": 1, "code": "a"}, ("seed",))
        Results(tmp_path).begin({"seed": 1, "code": "b"}, ("seed",))
        with pytest.raises(ConfigurationError, match="another seed"):
            Results(tmp_path).begin({"seed": 2}, ("seed",))
        assert json.loads((tmp_path / "run.json").read_text())["code"] == "b"

    def test_a_further_file_joins_the_results_and_one_that_changed_does_not(
        self, tmp_path: Path
    ) -> None:
        Results(tmp_path).begin({"files": {"a": "1"}}, ())
        Results(tmp_path).begin({"files": {"b": "2"}}, ())
        assert Results(tmp_path).run()["files"] == {"a": "1", "b": "2"}
        with pytest.raises(ConfigurationError, match="another a"):
            Results(tmp_path).begin({"files": {"a": "3"}}, ())


class TestConfiguration:
    def test_the_packaged_example_can_be_used(self) -> None:
        example = read_comparison(EXAMPLE)
        assert example.files == ("sample",)
        assert set(example.strategies) <= set(STRATEGIES)

    def test_files_stand_beside_the_configuration(self, tmp_path: Path) -> None:
        path = toml_file(tmp_path / "a.toml", {"files": ["x.jsonl"], "out": "there"})
        read = read_comparison(path, Path("elsewhere"))
        assert (read.folder, read.out) == (tmp_path, Path("elsewhere"))
        with pytest.raises(NotAConversationError):
            open_cells(read, Results(tmp_path / "none"))

    @pytest.mark.parametrize(
        ("values", "part"),
        [
            ({"out": "x"}, "files: Field required"),
            ({"files": [], "out": "x"}, "files: "),
            ({"files": ["a"], "out": "x", "strategies": ["bm52"]}, "no strategy 'bm52'"),
            ({"files": ["a"], "out": "x", "budgets": [0]}, "budgets.0"),
            ({"files": ["a"], "out": "x", "budget": [1]}, "budget: Extra inputs"),
            ({"files": ["a"], "out": "x", "model": {"judge": "a"}}, "model.name"),
        ],
    )
    def test_what_cannot_be_used_is_named(
        self, tmp_path: Path, values: dict[str, object], part: str
    ) -> None:
        path = toml_file(tmp_path / "a.toml", values)
        with pytest.raises(ConfigurationError) as raised:
            read_comparison(path)
        assert str(raised.value).startswith(f"{path}: ")
        assert part in str(raised.value)

    def test_what_is_no_toml_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_text("files = [")
        with pytest.raises(ConfigurationError, match=r"a\.toml cannot be read"):
            read_comparison(tmp_path / "a.toml")


def test_a_model_answers_and_judges(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.otherwise(
        router({"decide whether an answer": Reply("YES")}, Reply("It came to 11 euros"))
    )
    model = open_model("openai:gpt-4o", base_url=openai_server.base_url, api_key="test")
    bench = Bench(HashingEmbedder(64), "c0de", reader=model, judge=model)
    (cell,) = Trial("t", talk(6), talk(6).questions, bench).run(STRATEGIES["bm25"], [200])
    first, second = cell.asked
    assert (first.reply, first.exact, first.judged) == ("It came to 11 euros", False, True)
    assert first.f1 == pytest.approx(4 / 7)
    assert first.f1 is not None
    assert second.f1 is not None
    assert second.f1 < first.f1
