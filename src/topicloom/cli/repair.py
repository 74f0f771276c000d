"""`topicloom check` and `topicloom repair`: what is wrong with what is stored, and mending it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.console import Console

from topicloom.cli.console import CliOptions, open_console, print_dim, print_json, print_line
from topicloom.cli.context import open_context
from topicloom.cli.words import say
from topicloom.graph.repair import check_session, repair_session
from topicloom.nodes.runs import name_thread
from topicloom.storage.repair import Fault


def run_check(cli: CliOptions, name: str | None, *, as_json: bool) -> None:
    """Print what is wrong with a session, or with all; exits with 1 if anything is."""
    context, console = open_context(cli), open_console(quiet=as_json)
    stored = context.storage.sessions()
    if name is not None and name not in stored:
        context.read_session(name)  # its files are gone, or there is none
    names = stored if name is None else [name]
    with context.open_bare_graph(reading=True) as (graph, _):
        faults = [(one, fault) for one in names for fault in check_session(graph, name_thread(one))]
    _print(console, faults, as_json=as_json)
    if faults:
        raise typer.Exit(1)
    print_dim(console, f"nothing is wrong with {', '.join(names) or say('no sessions')}")


def run_repair(cli: CliOptions, name: str, *, as_json: bool) -> None:
    """Make anew what can be, and say it; exits with 1 if anything else is wrong."""
    context, console = open_context(cli), open_console(quiet=as_json)
    if name not in context.storage.sessions():
        context.read_session(name)  # its files are gone, or there is none
    with context.open_bare_graph() as (graph, _):
        faults = repair_session(graph, name_thread(name))
    _print(console, [(name, fault) for fault in faults], as_json=as_json)
    left = [fault for fault in faults if not fault.mend]
    print_dim(console, f"mended {len(faults) - len(left)}, left {len(left)}")
    if left:
        raise typer.Exit(1)


def _print(console: Console, faults: Sequence[tuple[str, Fault]], *, as_json: bool) -> None:
    if as_json:
        print_json({"session": session, **asdict(fault)} for session, fault in faults)
    for session, fault in faults:
        mend = f"; `topicloom repair {session}`: {fault.mend}" if fault.mend else ""
        print_line(console, f"{session}: {fault.place}: {fault.what}{mend}")
