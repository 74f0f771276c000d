"""The numbers of the ranking, in the table of the page on recall that says what each is for."""

from __future__ import annotations

import dataclasses
import re

from topicloom.search.ranking import MEETING, TALK

_ROW = re.compile(r"^\| `([a-z]+)` \| [\d.]+ \| [\d.]+ \|", re.MULTILINE)


def fill_page(page: str) -> str:
    """The page with the numbers as they are now.

    Raises:
        ValueError: A number has no row, or a row has no number.
    """
    talk, meeting = map(dataclasses.asdict, (TALK, MEETING))
    different = {*talk} ^ {*_ROW.findall(page)}
    if different:
        raise ValueError(f"without a row, or without a number: {sorted(different)}")
    return _ROW.sub(lambda row: f"| `{row[1]}` | {talk[row[1]]} | {meeting[row[1]]} |", page)
