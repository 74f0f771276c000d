"""The page loads nothing from elsewhere, makes no markup of a text, and speaks two languages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "ui"


def test_nothing_is_loaded_from_elsewhere_and_no_text_is_markup() -> None:
    text = "".join(path.read_text("utf-8") for path in (SOURCES / "src").iterdir())
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", text)
    assert set(re.findall(r"https?://[\w./]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"registry|localhost|127\.", (SOURCES / "package-lock.json").read_text())


def test_every_word_is_in_both_languages() -> None:
    english, chinese = (
        re.findall(r"(\w+): \"", part)
        for part in (SOURCES / "src" / "words.ts").read_text("utf-8").split("const zh")
    )
    assert english == chinese
