"""How topics are shown: one row each, with its life over time."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from topicloom.cli.console import one_line
from topicloom.cli.timeline import Axis, axis_of, fullest, picture
from topicloom.state.records import Record
from topicloom.state.session import Session
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore

_BESIDE = 58
"""Columns of the terminal that everything but the picture takes."""
_WIDEST = 48


def topic_view(
    session: Session, store: SessionStore, width: int, most: int | None = None
) -> RenderableType:
    """The topics of a session over time, in the order in which they came up.

    Args:
        session: The session.
        store: Its storage.
        width: Columns of the terminal.
        most: Rows at most; the smallest topics are left out, and how many is said.
    """
    records = store.records(session)
    if not records:
        return Text("nothing has been said yet", style="dim")
    axis = axis_of(records, max(12, min(_WIDEST, width - _BESIDE)))
    topics = list(store.roster(session))
    chosen = sorted(topics, key=lambda t: -t.count)[:most]
    parts = {t.id: store.topic_records(t) for t in topics if t in chosen}
    view = store.records(session, session.tail)
    table = _table(axis)
    tallest = fullest([*parts.values(), view], axis)
    for topic in topics:
        if topic.id in parts:
            table.add_row(*_row(topic, parts[topic.id], axis, tallest, topic.id in session.active))
    if view:
        table.add_row("", Text("not in a topic yet", style="dim"), *_sums(view, axis, tallest))
    return Group(table, Text(_legend(axis, len(topics) - len(parts)), style="dim"))


def _table(axis: Axis) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("topic", no_wrap=True, overflow="ellipsis", max_width=34)
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("days", justify="right", no_wrap=True)
    table.add_column(axis.heading, no_wrap=True, min_width=axis.columns)
    return table


def _row(
    topic: Topic, records: Sequence[Record], axis: Axis, tallest: int, awake: bool
) -> tuple[Text, Text, Text, Text, Text]:
    mark = Text(f"{'●' if awake else '○'} {topic.id}", style="green" if awake else "dim")
    name = Text(one_line(topic.name), style="bold" if awake else "")
    ended = topic.status != "open"
    if ended:
        name.append(f" ({topic.status})", style="dim")
    return mark, name, *_sums(records, axis, tallest, "green" if awake else "blue")


def _sums(
    records: Sequence[Record], axis: Axis, tallest: int, style: str = "dim"
) -> tuple[Text, Text, Text]:
    return (
        Text(f"{len(records):,}"),
        Text(f"{len({r.day for r in records}):,}"),
        Text(picture(records, axis, tallest), style=style),
    )


def _legend(axis: Axis, left_out: int) -> str:
    rest = f" · {left_out} smaller topics not shown" if left_out > 0 else ""
    return f"● awake ○ asleep · {axis.unit}{rest}"
