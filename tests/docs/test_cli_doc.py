"""The page of the command line says what the commands' help says."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_as_the_help_is() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "cli_doc.py"))
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    assert script["make_page"]() == page, "run: python scripts/cli_doc.py"
    assert "`topicloom topic rename`" in page
