"""Code blocks of all pages are as narrow as the page at 1,280 pixels: none scrolls sideways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.cells import cell_len
from tables import each_row

ROOT = Path(__file__).parents[2]
COLUMNS = 124
"""Columns that `docs/assets/extra.css` leaves room for. The widest pages are looked at
in a browser, by `test_rendered_pages.py`."""
PAGES = sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))


def list_code(text: str) -> Iterator[str]:
    """The lines of a page's code blocks, without what indents the block."""
    fence, indent = "", 0
    for line in text.splitlines():
        bare = line.lstrip()
        if not fence and bare.startswith("```"):
            fence, indent = bare[: len(bare) - len(bare.lstrip("`"))], len(line) - len(bare)
        elif fence and bare.strip() == fence:
            fence = ""
        elif fence:
            yield line[indent:]


@each_row("page", PAGES)
def test_code_fits_the_page(page: Path) -> None:
    lines = list_code((ROOT / page).read_text("utf-8"))
    assert not [line for line in lines if cell_len(line) > COLUMNS]
