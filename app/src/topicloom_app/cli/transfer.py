"""`topicloom export`: what was said in a session, as a file."""

from __future__ import annotations

import sys
from pathlib import Path

from topicloom.hosting import sort_by_time
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
