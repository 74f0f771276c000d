"""The page with the licences of what an installation brings along."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

HEAD = """\
# Licences

topicloom is under the Apache License, Version 2.0. Of the two encoders that ship with it, that of
English is too, and that of Chinese is under the MIT License (`NOTICE`). An installation
brings the packages below along, each under the licence that it states itself. None of them is in a
wheel of ours; Preact (MIT), of which the page of the inspector is made, is.

| package | licence | comes with |
|---|---|---|
"""
FOOT = "\nMade by `bin/generate` from what is installed.\n"


def installed(name: str) -> dict[str, Distribution]:
    """The distributions that one needs, without extras, and those that these need, by name."""
    found: dict[str, Distribution] = {}
    waiting = list(_needed(distribution(name)))
    while waiting:
        normal = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if normal in found:
            continue
        if package := _find(normal):
            found[normal] = package
            waiting += _needed(package)
    return found


def licence_of(package: Distribution) -> str:
    """The licence that a distribution states; empty if it states none."""

    def stated(key: str) -> list[str]:
        return package.metadata.get_all(key) or []

    named = [c.rpartition(" :: ")[2] for c in stated("Classifier") if "License ::" in c]
    first_lines = [text.strip().partition("\n")[0] for text in stated("License")]
    return ", ".join(stated("License-Expression") or named or first_lines)


def make_page(page: str) -> str:
    """The page with what is installed; as it was, if that stands there and nothing that went.

    What only another system or version of Python needs may stand there, too.
    """
    library = installed("topicloom")
    needed = installed("topicloom-app")
    rows = {
        name: f"| {name} | {licence_of(needed[name])} | {_name_part(name in library)} |\n"
        for name in sorted(needed.keys() - {"topicloom"})
    }
    listed = set(re.findall(r"^\| ([a-z0-9-]+) \|", page, re.MULTILINE)) - {"package"}
    gone = [name for name in listed - rows.keys() if _find(name)]
    is_current = not gone and all(row in page for row in rows.values())
    return page if is_current else HEAD + "".join(rows.values()) + FOOT


def _name_part(in_library: bool) -> str:
    return "the library" if in_library else "the application"


def _find(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _needed(package: Distribution) -> Iterator[str]:
    for requirement in map(Requirement, package.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name
