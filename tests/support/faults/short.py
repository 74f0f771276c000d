"""Runs a short form of a campaign in a process of its own, where nothing else has threads."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

COMMAND = Path(__file__).parents[2] / "faults"


def run_short(*words: str) -> dict[str, dict[str, int]]:
    """The figures of `python tests/faults` with these words and a new seed; nothing may fail."""
    seed = str(random.randrange(10**6))
    command = [sys.executable, str(COMMAND), *words, "--seed", seed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command[1:])}: {done.stderr[-6_000:]}"
    figures: dict[str, dict[str, int]] = json.loads(done.stdout)
    return figures
