"""The page of boundaries shows the figures that stand beside the weights."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_figures_of_the_weights() -> None:
    page = (ROOT / "docs" / "research" / "boundaries.md").read_text("utf-8")
    made = runpy.run_path(str(ROOT / "lab" / "scripts" / "boundary_doc.py"))["page_with_figures"](
        page
    )
    assert made == page, "run: python lab/scripts/boundary_doc.py"
