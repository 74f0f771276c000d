"""`topicloom export`: what was said in a session, as a file."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from topicloom.cli._pages import ExportKind, write_page
from topicloom.cli.console import CliOptions, count_of, open_console, print_dim, to_one_line
from topicloom.cli.context import open_context
from topicloom.errors import InputError
from topicloom.state.rounds import sort_by_time


def run_export(
    cli: CliOptions, name: str, kind: ExportKind, out: Path | None, *, hide: bool
) -> None:
    """Write what was said in a session into a file, or print it; to `hide` it, in other letters.

    It is in the order of time: what was imported later may have been said before.
    """
    messages = sort_by_time(open_context(cli).open_memory(name).history(limit=None))
    text = write_page(name, messages, hide, kind)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        # Its owner's alone, as what it is made of; a file that is there keeps its mode.
        with open(out, "w", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.write(text)
    except OSError as error:
        raise InputError("cannot write {path}: {error}", path=out, error=error) from error
    print_dim(open_console(), f"{count_of(len(messages), 'message')}: {to_one_line(str(out))}")
