"""Write the licences of what an installation brings along: `python scripts/licence_doc.py`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "licences.md"
HEAD = """\
# Licences

topicloom is under the Apache License, Version 2.0. Of the two encoders that ship with it, that of
English is too, and that of Chinese is under the MIT License (`NOTICE`). An installation
brings the packages below along, each under the licence that it states itself. None of them is part
of the wheel; Preact (MIT), of which the page of the inspector is made, is.

| package | licence |
|---|---|
"""
FOOT = "\nMade by `python scripts/licence_doc.py` from what is installed.\n"


def installed(name: str = "topicloom") -> dict[str, Distribution]:
    """The distributions that one needs, without extras, and those that these need, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(_needed(distribution(name)))
    while waiting:
        normal = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if normal in found:
            continue
        try:
            found[normal] = distribution(normal)
        except PackageNotFoundError:
            continue
        waiting += _needed(found[normal])
    return dict(sorted(found.items()))


def licence_of(package: Distribution) -> str:
    """The licence that a distribution states; empty if it states none."""

    def stated(key: str) -> list[str]:
        return package.metadata.get_all(key) or []

    named = [c.rpartition(" :: ")[2] for c in stated("Classifier") if "License ::" in c]
    first_lines = [text.strip().partition("\n")[0] for text in stated("License")]
    return ", ".join(stated("License-Expression") or named or first_lines)


def page() -> str:
    """The page as it should be."""
    rows = (f"| {name} | {licence_of(package)} |\n" for name, package in installed().items())
    return HEAD + "".join(rows) + FOOT


def _needed(package: Distribution) -> Iterator[str]:
    for requirement in map(Requirement, package.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
