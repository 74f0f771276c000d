"""A list of failures is read by names: each says what holds, in words."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_test_is_named_by_a_single_word() -> None:
    short = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in (ROOT / "tests", ROOT / "app" / "tests", ROOT / "lab" / "tests")
        for path in folder.rglob("test_*.py")
        for name in re.findall(r"^ *(?:async )?def (test_\w*)", path.read_text("utf-8"), re.M)
        if name.count("_") < 2
    ]
    assert not short, "say what holds: test_a_late_answer_is_used_by_a_later_turn"
