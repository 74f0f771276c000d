"""Every pattern of the package takes time that grows with the text: as `test_growth.py`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import partial

import pytest
from sieve import find_fast_growth

import topicloom

ANCHORED = frozenset(
    {
        "topicloom.topics.boundary_cues._LEANS",
        "topicloom.domain.skeleton._PURPOSE",
        "topicloom.review.reviewer._NO",
        "topicloom.roles.values._BARE",
        "topicloom.state.hierarchy._NUMBERED",
    }
)
"""Patterns that are only matched at the beginning of a text, or with all of it."""
OF_SHORT_TEXTS = (
    "topicloom.state.identity._THOUGHTS",  # only as far as the last of them ends
)
"""Beginnings of the names of patterns that never see a long text as it came."""


def list_patterns() -> dict[str, list[re.Pattern[str]]]:
    """Every pattern that a module of the package compiles when it is imported."""
    found: dict[str, list[re.Pattern[str]]] = {}
    for module in pkgutil.walk_packages(topicloom.__path__, "topicloom."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if patterns := list(_flatten(value)):
                    found[f"{module.name}.{name}"] = patterns
    return found


def _flatten(value: object, within: tuple[object, ...] = ()) -> Iterator[re.Pattern[str]]:
    """The patterns in a value, which may hold itself."""
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict | list | tuple) and all(value is not held for held in within):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _flatten(part, (*within, value))


@pytest.mark.slow
def test_every_pattern_is_fast_on_long_texts() -> None:
    patterns, looked, fast = list_patterns(), set[re.Pattern[str]](), list[object]()
    assert patterns.keys() >= ANCHORED
    for name in patterns:
        for pattern in patterns[name]:
            if pattern in looked or name.startswith(OF_SHORT_TEXTS):
                continue
            looked.add(pattern)

            def read(text: str) -> None:
                pattern.match(text)  # noqa: B023
                pattern.fullmatch(text)  # noqa: B023
                if name not in ANCHORED:  # noqa: B023
                    pattern.sub("", text)  # noqa: B023

            fast += [(name, *found) for found in find_fast_growth(read)]
    assert fast == []


@pytest.mark.slow
def test_the_ruler_sees_a_quadratic_pattern() -> None:
    slow = re.compile(r"\s+x")
    assert next(find_fast_growth(partial(slow.sub, "")))[0] == "\n"
    assert next(find_fast_growth(partial(re.compile(r"\s++").sub, "")), None) is None
