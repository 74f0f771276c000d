"""How messages, topics and receipts are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from topicloom.cli._excerpts import format_runs, shorten
from topicloom.cli._timeline import TimelineAxis, choose_axis, draw_row, find_maximum
from topicloom.cli.console import strip_control, to_one_line
from topicloom.state.receipt import Call, Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.sessions import SessionStore

_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "yellow", "system": "magenta"}


def print_messages(console: Console, records: Sequence[StoredMessage]) -> None:
    """Print messages under the days that they were said on."""
    shown = ""
    for record in records:
        if record.day != shown:
            shown = record.day
            console.print(
                Rule(Text(format_message_day(record), style="dim"), style="dim", align="left")
            )
        console.print(_line(record), soft_wrap=True)


def format_message_day(record: StoredMessage) -> str:
    """The day of a message as people write it: 2 March 2026; as it stands if it is no date."""
    return format_day(record.day)


def format_day(day: str, *, year: bool = True) -> str:
    """A day `2026-03-02` as 2 March 2026; as it stands if it is no date."""
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return strip_control(day)
    return f"{found.day} {found:%B}" + (f" {found.year}" if year else "")


def _line(record: StoredMessage) -> Text:
    clock = record.time[11:16]
    return Text.assemble(
        (f"{record.id:>5} {clock:5} ", "dim"),
        (f"{strip_control(record.label)}: ", _STYLES[record.role]),
        strip_control(record.text),
    )


_BESIDE = 58
"""Columns of the terminal that everything but the picture takes."""
_WIDEST = 48


def render_topics(
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
    axis = choose_axis(records, max(12, min(_WIDEST, width - _BESIDE)))
    topics = list(store.topic_table(session))
    chosen = sorted(topics, key=lambda t: -t.count)[:most]
    parts = {t.id: store.topic_records(t) for t in topics if t in chosen}
    view = store.records(session, session.tail)
    table = _make_table(axis)
    tallest = find_maximum([*parts.values(), view], axis)
    for topic in topics:
        if topic.id in parts:
            table.add_row(
                *_make_row(topic, parts[topic.id], axis, tallest, topic.id in session.active)
            )
    if view:
        table.add_row(
            "", Text("not in a topic yet", style="dim"), *_format_sums(view, axis, tallest)
        )
    return Group(table, Text(_format_legend(axis, len(topics) - len(parts)), style="dim"))


def _make_table(axis: TimelineAxis) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("topic", no_wrap=True, overflow="ellipsis", max_width=34)
    table.add_column("messages", justify="right", no_wrap=True)
    table.add_column("days", justify="right", no_wrap=True)
    table.add_column(axis.heading, no_wrap=True, min_width=axis.columns)
    return table


def _make_row(
    topic: Topic, records: Sequence[StoredMessage], axis: TimelineAxis, tallest: int, awake: bool
) -> tuple[Text, Text, Text, Text, Text]:
    mark = Text(f"{'●' if awake else '○'} {topic.id}", style="green" if awake else "dim")
    name = Text(to_one_line(topic.name), style="bold" if awake else "")
    ended = topic.status != "open"
    if ended:
        name.append(f" ({topic.status})", style="dim")
    return mark, name, *_format_sums(records, axis, tallest, "green" if awake else "blue")


def _format_sums(
    records: Sequence[StoredMessage], axis: TimelineAxis, tallest: int, style: str = "dim"
) -> tuple[Text, Text, Text]:
    return (
        Text(f"{len(records):,}"),
        Text(f"{len({r.day for r in records}):,}"),
        Text(draw_row(records, axis, tallest), style=style),
    )


def _format_legend(axis: TimelineAxis, left_out: int) -> str:
    rest = f" · {left_out} smaller topics not shown" if left_out > 0 else ""
    return f"● awake ○ asleep · {axis.unit}{rest}"


_SCORES = 8
"""Topics whose scores are shown."""


def render_receipt(receipt: Receipt, topic_table: TopicTable) -> RenderableType:
    """A receipt as a few labelled lines."""
    title = f"turn {receipt.turn}, answering {receipt.user}, {receipt.seconds:.1f} s"
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, lines in (
        ("read", _format_scores(receipt, topic_table)),
        ("quoted", _quoted(receipt)),
        ("woke", _format_names(receipt.woken, topic_table)),
        ("fell asleep", _format_names(receipt.slept, topic_table)),
        ("prompt", _format_prompt(receipt)),
        ("planned", _format_plan(receipt)),
        ("edited", [" ".join(map(str, edit)) for edit in receipt.edits]),
        ("refused", [to_one_line(error) for error in receipt.edit_errors]),
        ("calls", [_format_calls(role, receipt) for role in _list_roles(receipt)]),
        ("failed", [f"{c.role}: {shorten(c.failure or '', 80)}" for c in receipt.failures]),
        ("also", [to_one_line(event) for event in receipt.events]),
    ):
        if lines:
            table.add_row(label, Text("\n".join(lines)))
    return Group(Rule(Text(title, style="bold"), style="dim", align="left"), table)


def format_name(topic: str, topic_table: TopicTable) -> str:
    """A topic's name for people, with its id."""
    return f"{topic} {shorten(topic_table[topic].name, 40)}" if topic in topic_table else topic


def _format_scores(receipt: Receipt, topic_table: TopicTable) -> list[str]:
    ranked = sorted(receipt.scores.items(), key=lambda pair: -pair[1])
    lines = [f"{score:.2f}  {format_name(topic, topic_table)}" for topic, score in ranked[:_SCORES]]
    rest = len(ranked) - len(lines)
    return [*lines, f"and {rest} less relevant ones"] if rest else lines


def _quoted(receipt: Receipt) -> list[str]:
    return [
        f"{note.topic} {shorten(note.name, 40)}: {format_runs(note.quotes)}"
        for note in receipt.quoted
        if note.quotes
    ]


def _format_names(topics: tuple[str, ...], topic_table: TopicTable) -> list[str]:
    names = ", ".join(format_name(topic, topic_table) for topic in topics)
    return [names] if names else []


def _format_prompt(receipt: Receipt) -> list[str]:
    if not receipt.sections:
        return []
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in receipt.sections.items())
    return [f"{sum(receipt.sections.values()):,} of {receipt.window:,} tokens: {parts}"]


def _format_plan(receipt: Receipt) -> list[str]:
    plan = receipt.plan
    return [f"{plan.kind}, focus {plan.focus or 'none'}"] if plan else []


def _list_roles(receipt: Receipt) -> list[tuple[str, str]]:
    return list(Counter((call.role, call.model) for call in receipt.calls))


def _format_calls(role: tuple[str, str], receipt: Receipt) -> str:
    calls: list[Call] = [c for c in receipt.calls if (c.role, c.model) == role]
    read, written = sum(c.input_tokens for c in calls), sum(c.output_tokens for c in calls)
    cached = sum(c.cached_tokens for c in calls)
    tokens = f", {read:,} tokens in ({cached:,} cached), {written:,} out" if read else ""
    slowest = max(c.seconds for c in calls)
    return f"{len(calls)} x {role[0]} ({role[1]}), up to {slowest:.1f} s{tokens}"
