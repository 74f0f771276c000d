"""The page of the API says what the docstrings say."""

from __future__ import annotations

import runpy
from pathlib import Path

import topicloom
from topicloom import testing

ROOT = Path(__file__).parents[2]


def test_the_page_is_as_the_docstrings_are() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "api_doc.py"))
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    assert script["make_page"]() == page, "run: python scripts/api_doc.py"


def test_every_public_name_stands_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    named = [name for name in [*topicloom.__all__, *testing.__all__] if name not in page]
    assert not named
