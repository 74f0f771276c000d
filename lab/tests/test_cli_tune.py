"""`topicloom tune`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Run, assert_one_line, read_rows
from turn_logs import Day, log_of, write_log

from topicloom import ActivationPolicy, Receipt

LAX = ActivationPolicy(base=0.05, step=0.0, sleep_share=0.1)
TOPICS = tuple(f"t{n}" for n in range(1, 13))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a long session with thresholds that are too low."""
    days = [Day(dict.fromkeys(TOPICS, 0.6), split=TOPICS)]
    days += [Day({**dict.fromkeys(TOPICS, 0.2), TOPICS[n // 3 % 12]: 0.9}) for n in range(160)]
    return write_log(tmp_path / "turns.jsonl", log_of(days, LAX))


@pytest.fixture
def talked(run: Run, recording: Path) -> str:
    arguments = ("--session", "talk", "--no-questions", "--window", "1000")
    assert run("replay", str(recording), *arguments).code == 0
    return "talk"


class TestTune:
    @pytest.mark.slow
    def test_a_log_is_told_of_and_better_settings_with_it(
        self, run: Run, log: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in (("BASE", 0.05), ("STEP", 0), ("SLEEP_SHARE", 0.1)):
            monkeypatch.setenv(f"TOPICLOOM_ACTIVATION__{name}", str(value))
        outcome = run("tune", str(log), "--no-plots")
        assert (outcome.code, outcome.err) == (0, "")
        assert "turns: 161 turns, 161 of them with topics to read" in outcome.out
        assert "TOPICLOOM_ACTIVATION__" in outcome.out.partition("Suggested")[2]
        (row,) = read_rows(run, "tune", str(log), "--no-plots")
        assert row["figures"]["turns"] == 161
        assert row["suggested"]
        assert "of 170 topics quoted, 0 would have been dormant instead of 0" in outcome.out

    @pytest.mark.slow
    @pytest.mark.parametrize("in_force", [LAX, ActivationPolicy()], ids=["advice", "none"])
    def test_tuning_is_reported_in_chinese(
        self, run: Run, log: Path, monkeypatch: pytest.MonkeyPatch, in_force: ActivationPolicy
    ) -> None:
        for name, value in in_force.model_dump().items():
            monkeypatch.setenv(f"TOPICLOOM_ACTIVATION__{name.upper()}", str(value))
        outcome = run("--language", "zh", "tune", str(log), "--no-plots")
        assert "turns: 161 轮，其中 161 轮有话题可读" in outcome.out
        told = re.sub(r"^turns:|TOPICLOOM_\w+", "", outcome.out)
        settings = {*ActivationPolicy.model_fields}
        assert {*re.findall(r"[a-z_]{2,}", told)} <= settings

    def test_the_settings_of_the_log_have_to_be_in_force(self, run: Run, log: Path) -> None:
        outcome = run("tune", str(log), "--no-plots")
        assert "made with other settings" in " ".join(outcome.out.split())
        assert "TOPICLOOM_ACTIVATION__" not in outcome.out

    @pytest.mark.slow
    def test_a_session_with_pictures(self, run: Run, talked: str, tmp_path: Path) -> None:
        outcome = run("tune", talked, "--out", str(tmp_path / "pictures"), "--svg")
        assert (outcome.code, outcome.err) == (0, "")
        assert "more turns are needed" in " ".join(outcome.out.split())
        for name in ("scores", "topics", "prompt"):
            for kind in ("png", "svg"):
                path = tmp_path / "pictures" / f"{name}.{kind}"
                assert str(path) in outcome.out
                assert path.stat().st_size > 5_000

    @pytest.mark.slow
    def test_what_receipt_prints_is_a_log(self, run: Run, talked: str, tmp_path: Path) -> None:
        printed = run("receipt", talked, "--json").out
        receipts = [Receipt.model_validate_json(line) for line in printed.splitlines()]
        assert [r.turn for r in receipts] == list(range(1, len(receipts) + 1))
        path = tmp_path / "printed.jsonl"
        path.write_text(printed, "utf-8")
        _, *from_file = run("tune", str(path), "--no-plots").out.split()
        _, *from_session = run("tune", talked, "--no-plots").out.split()
        assert from_file == from_session

    def test_before_the_first_split(self, run: Run) -> None:
        assert run("chat", "new", stdin="Hello\n").code == 0
        outcome = run("tune", "new")
        assert outcome.code == 0
        assert "nothing to tune before the first split" in outcome.out

    def test_no_such_log(self, run: Run, tmp_path: Path) -> None:
        assert_one_line(run("tune", "nobody"), "there is no session 'nobody'")
        assert_one_line(run("tune", "nothing.jsonl"), "cannot read the turn log nothing.jsonl")
        empty = tmp_path / "empty.jsonl"
        empty.write_text("\n", "utf-8")
        assert_one_line(run("tune", str(empty)), "there is no turn in")
        empty.write_text("{}\n", "utf-8")
        assert_one_line(run("tune", str(empty)), "line 1 of", "is no receipt")
