"""Write the figures of the boundary model into docs/research/boundaries.md.

    python lab/scripts/boundary_doc.py

They come from the file beside the weights, where the training wrote them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from topicloom.lab import PACKAGED

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "research" / "boundaries.md"
BEGIN, END = "<!-- figures: made by lab/scripts/boundary_doc.py -->", "<!-- end of figures -->"


def page_with_figures(page: str) -> str:
    """The page with the figures as the weights have them.

    Raises:
        ValueError: The page has no place for them.
    """
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the page needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{_boundaries()}\n\n{END}{after}"


def _boundaries() -> str:
    described = json.loads(PACKAGED.with_suffix(".json").read_text("utf-8"))
    rows = {(f["split"], f["mode"], f["granularity"], f["file"]): f for f in described["figures"]}
    lines = [
        "| set | online | retrospective | online, `fine` | kind left out: online | retrospective |",
        "|---|---|---|---|---|---|",
    ]
    for file in sorted({f["file"] for f in described["figures"]}):
        keys = (
            ("folds", "online", "auto"),
            ("folds", "retrospective", "auto"),
            ("folds", "online", "fine"),
            ("kind", "online", "auto"),
            ("kind", "retrospective", "auto"),
        )
        lines.append(f"| {file} | " + " | ".join(_cell(rows[*k, file]) for k in keys) + " |")
    return "\n".join(lines)


def _cell(row: dict[str, Any]) -> str:
    return f"{_three(row['score'])} / {_three(row['pk'])} / {row['ratio']:.2f}"


def _three(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(page_with_figures(PAGE.read_text("utf-8")), "utf-8")
