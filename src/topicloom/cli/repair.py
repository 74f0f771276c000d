"""`topicloom check` and `topicloom repair`: what is wrong with what is stored, and mending it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import typer
from rich.text import Text

from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import CliContext, make_thread_config, open_context
from topicloom.graph.repair import check_session, repair_session
from topicloom.graph.session import CompiledSessionGraph, build_session_graph
from topicloom.storage.repair import Fault


def run_check(cli: CliOptions, name: str | None, *, as_json: bool) -> None:
    """Print what is wrong with a session, or with all; exits with 1 if anything is."""
    context, console = open_context(cli), open_console()
    names = context.storage.sessions() if name is None else [name]
    with _open_graph(context) as app:
        faults = [
            (one, fault)
            for one in names
            for fault in check_session(app, make_thread_config(one), context.storage)
        ]
    for session, fault in faults:
        if as_json:
            line = json.dumps({"session": session, **asdict(fault)}, ensure_ascii=False)
            sys.stdout.write(line + "\n")
        else:
            console.print(Text(to_one_line(_describe(session, fault))), soft_wrap=True)
    if faults:
        raise typer.Exit(1)
    if not as_json:
        print_dim(console, f"nothing is wrong with {', '.join(names) or 'no sessions'}")


def run_repair(cli: CliOptions, name: str) -> None:
    """Make anew what can be, and say it; exits with 1 if anything else is wrong."""
    context, console = open_context(cli), open_console()
    context.read_session(name)
    with _open_graph(context) as app:
        faults = repair_session(app, make_thread_config(name), context.storage)
    for fault in faults:
        console.print(Text(to_one_line(_describe(name, fault))), soft_wrap=True)
    left = [fault for fault in faults if not fault.mend]
    print_dim(console, f"mended {len(faults) - len(left)}, left {len(left)}")
    if left:
        raise typer.Exit(1)


@contextmanager
def _open_graph(context: CliContext) -> Iterator[CompiledSessionGraph]:
    with context.open_checkpoints() as saver:
        graph = build_session_graph(settings=context.settings, storage=context.storage)
        yield graph.compile(checkpointer=saver)


def _describe(session: str, fault: Fault) -> str:
    mend = f"; `topicloom repair {session}`: {fault.mend}" if fault.mend else ""
    return f"{session}: {fault.place}: {fault.what}{mend}"
