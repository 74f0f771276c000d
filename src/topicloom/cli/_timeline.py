"""A topic's life as a row of blocks: more in a stretch of time, a taller block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from topicloom.state.stored_message import StoredMessage

_BLOCKS = "▁▃▅█"
_FEW_DAYS = 5
"""Up to this many days a conversation is drawn by message, not by time."""


@dataclass(frozen=True, slots=True)
class TimelineAxis:
    """The columns of a picture."""

    columns: int
    """How many there are."""
    heading: str
    """What stands above them; it may reach a little over their end."""
    unit: str
    """What a column is."""
    place: Callable[[StoredMessage], int]
    """The column that a message belongs to, from 0."""


def choose_axis(records: Sequence[StoredMessage], width: int) -> TimelineAxis:
    """The axis on which a conversation is drawn.

    Args:
        records: All of its messages, in order.
        width: Columns at most, from 12.
    """
    days = [day for day in map(_parse_day, records) if day is not None]
    first, last = (min(days), max(days)) if days else (date.min, date.min)
    if (last - first).days < _FEW_DAYS:
        return _make_message_axis(len(records), width)
    return _make_day_axis(first, last, width)


def draw_row(records: Iterable[StoredMessage], axis: TimelineAxis, most: int) -> str:
    """The blocks of some messages, one character a column.

    Args:
        records: The messages.
        axis: The columns.
        most: How many messages in a column make the tallest block.
    """
    counts = Counter(axis.place(record) for record in records)
    return "".join(_choose_bar(counts[column], most) for column in range(axis.columns))


def find_maximum(groups: Iterable[Iterable[StoredMessage]], axis: TimelineAxis) -> int:
    """The most messages that any of the groups has in one column."""
    return max(
        (max(_count_columns(group, axis).values(), default=1) for group in groups), default=1
    )


def _count_columns(records: Iterable[StoredMessage], axis: TimelineAxis) -> Counter[int]:
    return Counter(axis.place(record) for record in records)


def _choose_bar(count: int, most: int) -> str:
    if not count:
        return " "
    return _BLOCKS[min(len(_BLOCKS) - 1, len(_BLOCKS) * (count - 1) // max(most, 1))]


def _make_message_axis(count: int, width: int) -> TimelineAxis:
    step = -(-max(count, 1) // width)
    columns = -(-max(count, 1) // step)
    last = f"m{count}"
    heading = f"m1{last.rjust(columns - 2)}" if columns > len(last) + 2 else "m1"
    return TimelineAxis(
        columns, heading, _format_unit(step, "message"), lambda r: (r.seq - 1) // step
    )


def _make_day_axis(first: date, last: date, width: int) -> TimelineAxis:
    step = -(-((last - first).days + 1) // width)
    columns = (last - first).days // step + 1

    def place(record: StoredMessage) -> int:
        day = _parse_day(record)
        # A message whose time nobody can read stands at the end.
        return columns - 1 if day is None else (day - first).days // step

    starts = [first + timedelta(step * column) for column in range(columns)]
    return TimelineAxis(columns, _format_months(starts), _format_unit(step, "day"), place)


def _format_months(starts: Sequence[date]) -> str:
    """The months above the columns in which they begin, as far as there is room."""
    heading = ""
    for column, start in enumerate(starts):
        begins = column == 0 or start.month != starts[column - 1].month
        if begins and len(heading) <= column:
            heading = heading.ljust(column) + f"{start:%b} "
    return heading.rstrip()


def _format_unit(step: int, name: str) -> str:
    return f"a column is {step} {name}s" if step > 1 else f"a column is a {name}"


def _parse_day(record: StoredMessage) -> date | None:
    try:
        return date.fromisoformat(record.day)
    except ValueError:
        return None
