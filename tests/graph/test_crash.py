"""kill -9 at random points of replays: after a restart nothing is lost and nothing twice.

`TOPICLOOM_KILLS=100` runs the long form.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("TOPICLOOM_KILLS", "12"))
SCRIPT = Path(__file__).parents[1] / "support" / "crash_replay.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_replays_lose_nothing(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(KILLS), str(seed)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60 + 5 * KILLS,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-3_000:]}"
    assert json.loads(done.stdout)["kills"] >= KILLS
