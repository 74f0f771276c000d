"""The page on recall gives the constants of the ranking as they are."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from topicloom.search import ranking, turn_order, turn_topics

ROOT = Path(__file__).parents[2]


def test_every_constant_is_given_as_it_is() -> None:
    page = (ROOT / "docs" / "research" / "recall.md").read_text("utf-8")
    rows = re.findall(r"^\| `(_[A-Z_]+)` \| ([\d.]+) \|", page, re.MULTILINE)
    given = {name: float(value) for name, value in rows}
    constants = {**vars(ranking), **vars(turn_topics), **vars(turn_order)}
    numbers = {n: v for n, v in constants.items() if n.startswith("_") and type(v) is float}
    assert given == numbers


def test_both_manners_are_given_as_they_are() -> None:
    page = (ROOT / "docs" / "research" / "recall.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z]+)` \| ([\d.]+) \| ([\d.]+) \|", page, re.MULTILINE)
    for column, weights in ((1, ranking._DIALOGUE), (2, ranking._MEETING)):
        assert {r[0]: float(r[column]) for r in rows} == dataclasses.asdict(weights)
