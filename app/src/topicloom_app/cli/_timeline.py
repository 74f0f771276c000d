"""A topic's life as a row of blocks: more in a stretch of time, a taller block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from rich.cells import cell_len

from topicloom import StoredMessage
from topicloom_app.cli.words import say

_BLOCKS = "▁▃▅█"
_FEW_DAYS = 5
"""Up to this many days a conversation is drawn by message, not by time."""


@dataclass(frozen=True, slots=True)
class TimelineAxis:
    """The columns of a picture."""

    columns: int
    heading: str
    """Text above the columns; it may be a little wider than they are."""
    unit: str
    """The length of a column, in words."""
    find_column: Callable[[StoredMessage], int]
    """The column of a message, from 0."""


def choose_axis(messages: Sequence[StoredMessage], width: int) -> TimelineAxis:
    """The axis for all messages of a conversation, with at most `width` (from 12) columns."""
    days = [day for day in map(_parse_day, messages) if day is not None]
    first, last = (min(days), max(days)) if days else (date.min, date.min)
    if (last - first).days < _FEW_DAYS:
        return _make_message_axis(len(messages), width)
    return _make_day_axis(first, last, width)


def draw_row(messages: Iterable[StoredMessage], axis: TimelineAxis, tallest: int) -> str:
    """One block a column; `tallest` is the number of messages of the tallest block."""
    counts = Counter(map(axis.find_column, messages))
    return "".join(_choose_bar(counts[column], tallest) for column in range(axis.columns))


def find_maximum(groups: Iterable[Iterable[StoredMessage]], axis: TimelineAxis) -> int:
    """The most messages that any of the groups has in one column."""
    counts = (Counter(map(axis.find_column, group)) for group in groups)
    return max((count for group in counts for count in group.values()), default=1)


def _choose_bar(count: int, tallest: int) -> str:
    if not count:
        return " "
    return _BLOCKS[min(len(_BLOCKS) - 1, len(_BLOCKS) * (count - 1) // max(tallest, 1))]


def _make_message_axis(count: int, width: int) -> TimelineAxis:
    step = -(-max(count, 1) // width)
    columns = -(-max(count, 1) // step)
    last = f"m{count}"
    heading = f"m1{last.rjust(columns - 2)}" if columns > len(last) + 2 else "m1"
    one, many = "a column is a message", "a column is {count} messages"
    unit = say(one) if step == 1 else say(many, count=step)
    return TimelineAxis(columns, heading, unit, lambda message: (message.seq - 1) // step)


def _make_day_axis(first: date, last: date, width: int) -> TimelineAxis:
    step = -(-((last - first).days + 1) // width)
    columns = (last - first).days // step + 1

    def find_column(message: StoredMessage) -> int:
        day = _parse_day(message)
        # A message with an unreadable time stands at the end.
        return columns - 1 if day is None else (day - first).days // step

    starts = [first + timedelta(step * column) for column in range(columns)]
    one, many = "a column is a day", "a column is {count} days"
    unit = say(one) if step == 1 else say(many, count=step)
    return TimelineAxis(columns, _format_months(starts), unit, find_column)


def _format_months(starts: Sequence[date]) -> str:
    """The names of months above their first columns, where there is room."""
    heading = ""
    for column, start in enumerate(starts):
        begins = column == 0 or start.month != starts[column - 1].month
        if begins and (room := column - cell_len(heading)) >= 0:
            heading += " " * room + say(format(start, "%b")) + " "
    return heading.rstrip()


def _parse_day(message: StoredMessage) -> date | None:
    try:
        return date.fromisoformat(message.day)
    except ValueError:
        return None
