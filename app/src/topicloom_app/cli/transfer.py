"""`topicloom export`: what was said in a session, as a file."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from topicloom import StoredMessage
from topicloom.hosting import group_rounds, parse_iso_seconds
from topicloom_app.cli._pages import ExportKind, write_page
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    to_one_line,
    write_file,
)
from topicloom_app.cli.context import open_context


def run_export(
    cli: CliOptions, name: str, kind: ExportKind, out: Path | None, *, hide: bool
) -> None:
    """Write a session into a file, or print it; with `hide`, in other letters.

    Messages are in the order of time: what was imported later may have been said before.
    """
    messages = sort_by_time(open_context(cli).open_memory(name).history(limit=None))
    text = write_page(name, messages, hide, kind)
    if out is None:
        sys.stdout.write(text)
        return
    write_file(out, [text])
    print_dim(open_console(), f"{count_of(len(messages), 'message')}: {to_one_line(str(out))}")


def sort_by_time(messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Messages in the order in which their rounds began.

    Rounds stay whole, and one without a time that can be read stays behind the one before it.
    """
    timed, seconds = list[tuple[float, Sequence[StoredMessage]]](), -math.inf
    for round_ in group_rounds(messages):
        began = parse_iso_seconds(round_.messages[0].time)
        seconds = seconds if began is None else began
        timed.append((seconds, round_.messages))
    return [message for _, said in sorted(timed, key=lambda row: row[0]) for message in said]
