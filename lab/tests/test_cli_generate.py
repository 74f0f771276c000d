"""`topicloom eval generate` and `caching`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Run, assert_one_line

from topicloom_app import load_conversations
from topicloom_lab.cli.output import write_lines
from topicloom_lab.generators import generate


def test_what_is_written_is_read_again(run: Run, tmp_path: Path) -> None:
    spec, out = "sniah:tokens=400,depths=3,seed=5", tmp_path / "more" / "sniah.jsonl"
    outcome = run("eval", "generate", spec, "--out", str(out))
    assert outcome.code == 0
    assert "3 conversations, 12 messages" in " ".join(outcome.out.split())
    assert list(load_conversations(out)) == list(generate(spec))
    run("eval", "generate", spec, "--out", str(out))
    assert len(out.read_text("utf-8").splitlines()) == 3


@pytest.mark.parametrize(
    ("spec", "said"), [("hay", "no generator 'hay'"), ("sniah:depth=3", "'depth'")]
)
def test_a_wrong_specification_leaves_the_file_alone(
    run: Run, tmp_path: Path, spec: str, said: str
) -> None:
    out = tmp_path / "kept.jsonl"
    out.write_text("kept", encoding="utf-8")
    assert_one_line(run("eval", "generate", spec, "--out", str(out)), said)
    assert out.read_text("utf-8") == "kept"


def test_what_stops_half_way_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def stop() -> Iterator[str]:
        yield "half"
        raise KeyboardInterrupt

    out = tmp_path / "kept.jsonl"
    out.write_text("kept", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        write_lines(out, stop())
    assert out.read_text("utf-8") == "kept"


def test_help_lists_what_can_be_measured_on(run: Run) -> None:
    shown = " ".join(run("eval", "--help").out.split())
    for name in ("sniah", "oolong", "hotpotqa", "segments", "threads", "questions"):
        assert name in shown


@pytest.mark.slow
def test_caching_shows_a_row_for_each_rule(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    run("eval", "generate", "oolong:items=120,message=10", "--out", str(path))
    outcome = run(
        *("eval", "caching", str(path), "--turns", "12", "--window", "2000", "--recall", "300")
    )
    assert outcome.code == 0
    assert outcome.out.count("anthropic") == outcome.out.count("deepseek") == 2
    assert "topic windows" in outcome.out
    assert "12 turns" in outcome.out


def test_caching_names_what_is_missing(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": "hello"}\n', encoding="utf-8")
    assert_one_line(run("eval", "caching", str(path), "--conversation", "2"), "no conversation 2")
    assert_one_line(run("eval", "caching", str(path)), "nobody answers")
