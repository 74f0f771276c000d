"""The constants of the ranking, in the tables of the page on recall that say what each is for."""

from __future__ import annotations

import dataclasses
import re

from topicloom.search import ranking, turn_order, turn_topics

_ROW = re.compile(r"^\| `(_[A-Z_]+)` \| [\d.]+ \|", re.MULTILINE)
_MANNER = re.compile(r"^\| `([a-z]+)` \| [\d.]+ \| [\d.]+ \|", re.MULTILINE)


def fill_page(page: str) -> str:
    """The page with the constants as they are now.

    Raises:
        ValueError: A constant has no row, or a row has no constant.
    """
    constants = {**vars(ranking), **vars(turn_topics), **vars(turn_order)}
    numbers = {n: v for n, v in constants.items() if n.startswith("_") and type(v) is float}
    talk, meeting = map(dataclasses.asdict, (ranking._DIALOGUE, ranking._MEETING))
    different = {*numbers, *talk} ^ {*_ROW.findall(page), *_MANNER.findall(page)}
    if different:
        raise ValueError(f"without a row, or without a constant: {sorted(different)}")
    page = _ROW.sub(lambda row: f"| `{row[1]}` | {numbers[row[1]]} |", page)
    return _MANNER.sub(lambda row: f"| `{row[1]}` | {talk[row[1]]} | {meeting[row[1]]} |", page)
