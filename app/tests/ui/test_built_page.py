"""What is in the wheel was built from the sources of the page, and never makes markup of a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES, BUILT = ROOT / "ui", ROOT / "app" / "src" / "topicloom_app" / "ui" / "static"


def digest(paths: Iterable[Path]) -> str:
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def test_the_built_files_fit_the_sources() -> None:
    names = ("build.mjs", "package-lock.json", "package.json", "tsconfig.json")
    sources = [*(SOURCES / name for name in names), *sorted((SOURCES / "src").iterdir())]
    built = [path for path in sorted(BUILT.iterdir()) if path.name != "digests.json"]
    known = json.loads((BUILT / "digests.json").read_text("utf-8"))
    assert known == {"sources": digest(sources), "built": digest(built)}, "cd ui && npm run build"


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
