"""What hints and pages say to install can be installed: topicloom itself is not on PyPI."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topicloom.extras import EXTRAS
from topicloom.hosting import name_install
from topicloom_lab.strategies.catalogue import INSTALL_PEERS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / name
    for name in ("README.md", "README.zh.md", "CONTRIBUTING.md", "app/README.md", "lab/README.md")
]
SOURCES = [ROOT / "docs", ROOT / "src", ROOT / "app" / "src", ROOT / "lab" / "src"]


def read_project(folder: str = "") -> Any:
    """The part of a `pyproject.toml` that says what is installed."""
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]


def list_requirements() -> Iterator[tuple[str, str]]:
    """Each word after `pip install`, with the file that says it."""
    found = (path for folder in SOURCES for path in folder.rglob("*"))
    for path in [*PAGES, *(path for path in found if path.suffix in {".md", ".py", ".txt"})]:
        for words in re.findall(r"pip install ([^`\n#]*)", path.read_text("utf-8")):
            yield from (
                (str(path.relative_to(ROOT)), word.strip("\"',)")) for word in words.split()
            )


def test_hints_name_the_packages_of_the_extras() -> None:
    given = {name: tuple(p) for name, p in read_project()["optional-dependencies"].items()}
    assert given.pop("app") == ("topicloom-app==0.2.0",)
    assert given == EXTRAS
    assert name_install("providers") == 'pip install "langchain>=1.4,<2"'
    peers = read_project("lab")["optional-dependencies"]["peers"]
    assert " ".join(["pip install", *(f'"{package}"' for package in peers)]) == INSTALL_PEERS


def test_nothing_is_to_be_installed_that_cannot_be() -> None:
    projects = [read_project(folder) for folder in ("", "app", "lab")]
    known = {p for project in projects for p in project["dependencies"]}
    for project in projects:
        known.update(*project.get("optional-dependencies", {}).values())
    named = list(list_requirements())
    assert not [(file, word) for file, word in named if word.startswith("topicloom")]
    bounded = [(file, word) for file, word in named if re.match(r"[\w\[\]-]+[<>=]", word)]
    assert len(bounded) >= 5
    assert not [(file, word) for file, word in bounded if word not in known]
