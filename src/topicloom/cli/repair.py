"""`topicloom check` and `topicloom repair`: what is wrong with what is stored, and mending it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import typer
from rich.text import Text

from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import CliContext, make_thread_config, open_context
from topicloom.errors import StorageError, StorageUnavailableError
from topicloom.graph.session import build_session_graph
from topicloom.nodes.step import dump
from topicloom.storage.lines import find_missing, find_rivals, publish
from topicloom.storage.repair import Fault, find_faults, repair_session


def run_check(cli: CliOptions, name: str | None, *, as_json: bool) -> None:
    """Print what is wrong with a session, or with all; exits with 1 if anything is."""
    context, console = open_context(cli), open_console()
    names = context.storage.sessions() if name is None else [name]
    faults = [(one, fault) for one in names for fault in _find_in(context, one)]
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
    """Say what can be made anew, and do it; exits with 1 if anything else is wrong."""
    context, console = open_context(cli), open_console()
    session, store = context.read_session(name)
    with context.storage.lock(name), context.open_checkpoints() as saver:
        faults = find_faults(session, store)
        for fault in faults:
            console.print(Text(to_one_line(_describe(name, fault))), soft_wrap=True)
        if any(fault.mend for fault in faults):
            mended = repair_session(session, store, faults)
            graph = build_session_graph(settings=context.settings, storage=context.storage)
            app = graph.compile(checkpointer=saver)
            # A turn that failed of it ends here; what it had said is taken in with the next.
            app.update_state(make_thread_config(name), dump(mended), as_node="finalize")
            heads = find_rivals(store, mended)
            known = [h.ref for h in heads if not find_missing(store, h.session, mended)]
            publish(store, mended, known)  # the next turn goes on from what was mended
    left = [fault for fault in faults if not fault.mend]
    print_dim(console, f"mended {len(faults) - len(left)}, left {len(left)}")
    if left:
        raise typer.Exit(1)


def _find_in(context: CliContext, name: str) -> list[Fault]:
    try:
        session = context.find_session(name)
        if session is None:
            return [Fault("checkpoints", "there is none of this session")]
        return find_faults(session, context.read_session(name)[1])
    except (StorageError, StorageUnavailableError) as error:
        return [Fault("session", str(error))]


def _describe(session: str, fault: Fault) -> str:
    mend = f"; `topicloom repair {session}`: {fault.mend}" if fault.mend else ""
    return f"{session}: {fault.place}: {fault.what}{mend}"
