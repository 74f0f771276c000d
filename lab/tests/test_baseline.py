"""`lab/benchmarks/baseline.py`: it goes on where it stopped, shares its work, and writes a page."""

from __future__ import annotations

import importlib.util
import json
import sys
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "baseline.py"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def baseline() -> ModuleType:
    """The script, imported."""
    spec = importlib.util.spec_from_file_location("baseline", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["baseline"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of data: a conversation of six messages, and its threads."""
    texts = ["The oak worktop costs 140 euros.", "Noted.", "The boiler leaks.", "Call a plumber."]
    messages = [
        {"id": f"a{n}", "role": ("user", "assistant")[n % 2], "text": text}
        for n, text in enumerate([*texts, "What does the worktop cost?", "140 euros."])
    ]
    asked: dict[str, object] = {"id": "q", "question": texts[0], "answer": "140"}
    asked |= {"asked_at": "a4", "evidence": ["a0"]}
    talk = {"id": "talk", "messages": messages, "questions": [asked]}
    threads = [
        {"id": m["id"], "speaker": m["role"], "text": m["text"], "thread": "one"} for m in messages
    ]
    for name, line in (("memory", talk), ("threads", {"id": "talk", "messages": threads})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "talk_dev.jsonl").write_text(json.dumps(line), "utf-8")
    return tmp_path


def test_all_is_measured_once(
    baseline: ModuleType, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = folder / "out", folder / "page.md"
    given = [str(folder), "--out", str(out), "--page", str(page)]
    # Another process is at the first conversation.
    with baseline.hold(out / "memory/talk_dev/001.lock") as free:
        assert free
        baseline.main(given)
        assert "memory/talk_dev/001" not in capsys.readouterr().out
    baseline.main(given)
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "memory/talk_dev/001"
    ]
    baseline.main(given)
    assert capsys.readouterr().out == ""
    names = sorted(str(path.relative_to(out).with_suffix("")) for path in out.rglob("*.json"))
    ways = ["memory/talk_dev", "topics/talk_dev/gold", "topics/talk_dev/none", "threads/talk_dev"]
    kinds = product(("ideal", "noisy-0.2", "silent", "garbage"), ("decide", "advise"))
    ways += [f"readers/talk_dev/{kind} {weight}" for kind, weight in kinds]
    assert names == sorted(f"{way}/001" for way in ways)
    text = page.read_text("utf-8")
    for title in ("## Recall", "## Topics on trial", "## Readers", "## Topics", "## CPU of a turn"):
        assert title in text
    (line,) = [line for line in text.splitlines() if line.startswith("| talk_dev | 1 | 1 |")]
    assert "1.000" in line  # the evidence was in view


def test_results_of_another_version_are_not_mixed(baseline: ModuleType, folder: Path) -> None:
    out = folder / "out"
    given = [str(folder), "--out", str(out), "--parts", "threads"]
    baseline.main(given)
    (result,) = out.rglob("*.json")
    row = json.loads(result.read_text("utf-8"))
    result.write_text(json.dumps(row | {"code": "earlier"}), "utf-8")
    with pytest.raises(SystemExit, match="another version of the code"):
        baseline.main(given)
    baseline.main([*given, "--no-run"])
