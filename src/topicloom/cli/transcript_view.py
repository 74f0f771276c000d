"""How messages are shown: day by day, word for word."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from topicloom.cli.console import clean
from topicloom.state.records import Record

_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "yellow", "system": "magenta"}


def print_records(console: Console, records: Sequence[Record]) -> None:
    """Print messages under the days that they were said on."""
    shown = ""
    for record in records:
        if record.day != shown:
            shown = record.day
            console.print(Rule(Text(day_of(record), style="dim"), style="dim", align="left"))
        console.print(_line(record), soft_wrap=True)


def day_of(record: Record) -> str:
    """The day of a message as people write it: 2 March 2026; as it stands if it is no date."""
    return written(record.day)


def written(day: str, *, year: bool = True) -> str:
    """A day `2026-03-02` as 2 March 2026; as it stands if it is no date."""
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return clean(day)
    return f"{found.day} {found:%B}" + (f" {found.year}" if year else "")


def _line(record: Record) -> Text:
    clock = record.time[11:16]
    return Text.assemble(
        (f"{record.id:>5} {clock:5} ", "dim"),
        (f"{clean(record.label)}: ", _STYLES[record.role]),
        clean(record.text),
    )
