"""Write the tables of a comparison into docs/research/comparison.md.

    topicloom eval run CONFIG --out OUT
    python lab/scripts/comparison_doc.py OUT

The figures come from the finished cells of OUT and from nowhere else.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from topicloom_lab.comparison.config import name_of
from topicloom_lab.comparison.report import lead_table, made_with, recall_table
from topicloom_lab.comparison.results import Results, summaries

PAGE = Path(__file__).parents[2] / "docs" / "research" / "comparison.md"
BEGIN, END = "<!-- tables: made by lab/scripts/comparison_doc.py -->", "<!-- end of tables -->"


def page_with_tables(page: str, results: Results) -> str:
    """The page with the tables of some results.

    Raises:
        ValueError: The page has no place for them.
    """
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the page needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{_tables(results)}\n\n{END}{after}"


def _tables(results: Results) -> str:
    cells, run = list(results.cells().values()), results.run()
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
    return "\n\n".join([*filter(None, parts), "Made with:", made_with(cells, run)])


def main() -> None:
    """Write the tables of the results that the command line names.

    Raises:
        SystemExit: The folder holds no finished cell: the page stays as it is.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="folder that `topicloom eval run` wrote to")
    results = Results(parser.parse_args().out)
    if not results.cells():
        parser.error(f"no finished cells in {results.folder}")
    PAGE.write_text(page_with_tables(PAGE.read_text("utf-8"), results), "utf-8")


if __name__ == "__main__":
    main()
