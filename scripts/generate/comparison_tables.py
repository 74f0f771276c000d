"""The tables of a comparison of strategies, from the finished cells of a run."""

from __future__ import annotations

from pathlib import Path

from scripts.generate.files import ROOT, replace_part

from topicloom_lab.comparison.config import name_of
from topicloom_lab.comparison.report import lead_table, made_with, recall_table
from topicloom_lab.comparison.results import Results, summaries

PAGE = ROOT / "docs" / "research" / "comparison.md"


def write_tables(folder: Path) -> None:
    """Write the results in a folder, as `topicloom eval run` left them, into the page.

    Raises:
        SystemExit: The folder holds no finished cell: the page stays as it is.
    """
    results = Results(folder)
    cells, run = list(results.cells().values()), results.run()
    if not cells:
        raise SystemExit(f"no finished cells in {folder}")
    found = summaries(cells)
    parts = []
    for source in dict.fromkeys(s.source for s in found):
        here = [s for s in found if s.source == source]
        first = here[0]
        parts += [
            f"### {name_of(source)}",
            f"{len(first.cells)} conversations, {len(first.asked)} questions with evidence.",
            recall_table(here),
            lead_table(here, run.get("seed", 0)),
        ]
    text = "\n\n".join([*filter(None, parts), "Made with:", made_with(cells, run)])
    PAGE.write_text(replace_part(PAGE.read_text("utf-8"), "tables", text), "utf-8")
