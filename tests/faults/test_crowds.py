"""Many at once: whoever is told that a turn was taken finds what was said.

All of it: `python tests/faults crowd`.
"""

from __future__ import annotations

import os

import pytest
from faults.short import run_short

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


def test_turns_beside_reviews_and_turns_that_are_cancelled() -> None:
    figures = run_short("crowd", "--on", "files", "--only", "beside", "cancel", "--sample", "2")
    assert figures["crowd/beside"]["turns"] == 8


def test_many_turns_at_once() -> None:
    options = ["--on", "files", "--only", "threads", "tasks", "two", "--sample", "1"]
    run_short("crowd", *options, "--sessions", "4", "--at-once", "12")
