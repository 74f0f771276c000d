"""Every package that an installation brings along stands on the page of licences, with its own."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_names_what_is_installed() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "licence_doc.py"))
    lines = (ROOT / "docs" / "reference" / "licences.md").read_text("utf-8").splitlines()
    listed = {
        cells[1].strip(): cells[2].strip()
        for cells in (line.split("|") for line in lines)
        if len(cells) == 4
    }
    needed = script["installed"]()
    assert {"langgraph", "numpy", "onnxruntime"} <= needed.keys()
    absent = {name for name in needed if not listed.get(name)}
    assert not absent, "run: python scripts/licence_doc.py"
