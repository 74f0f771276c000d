"""The notebooks run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

JUPYTER = Path(sys.executable).with_name("jupyter")
NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=pytest.mark.slow if p.stem == "tour" else pytest.mark.long, id=p.stem)
        for p in NOTEBOOKS
    ],
)
def test_a_notebook_runs_to_its_end(path: Path) -> None:
    done = subprocess.run([JUPYTER, "execute", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
