"""A list of failures is read by names: each says what holds, in words."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_test_is_named_by_a_single_word() -> None:
    short = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for folder in (ROOT / "tests", ROOT / "lab" / "tests")
        for path in folder.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.startswith("test_") and node.name.count("_") < 2
    ]
    assert not short, "say what holds: test_a_late_answer_is_used_by_a_later_turn"
