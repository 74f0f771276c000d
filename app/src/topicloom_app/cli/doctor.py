"""`topicloom doctor`, `check` and `repair`: what works here, what is stored wrong, mending it."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from topicloom import (
    ConfigurationError,
    Fault,
    StorageUnavailableError,
    TopicLoomError,
    check_session,
    open_embedder,
    repair_session,
)
from topicloom.hosting import (
    FilledText,
    choose_models,
    describe_error,
    name_install,
    name_thread,
    open_role_model,
    reachable,
)
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_line,
    to_one_line,
)
from topicloom_app.cli.context import CliContext, describe_model, find_reply_model, open_context
from topicloom_app.cli.reader_trial import describe_trial, open_reader, try_reader
from topicloom_app.cli.words import say

_PACKAGES = ("langgraph", "langchain-core", "langchain-openai")
_EXTRAS = {
    "langchain": ("models of all providers", name_install("providers")),
    "sentence_transformers": ("encoders and rerankers of your own", name_install("encoders")),
    "psycopg": ("PostgreSQL", name_install("postgres")),
    "opentelemetry": ("traces and metrics in OpenTelemetry", name_install("otel")),
    "topicloom_lab": ("the commands eval, train and tune", "pip install ./lab"),
}
"""What else can be installed, by its module: what it is for, and the command that installs it."""


def run_doctor(cli: CliOptions, model: str | None, *, as_json: bool) -> None:
    """Check each part and print a line; exits by `SystemExit` with 1 if something is wrong.

    A model that is set is asked for one word. A `model` that is given reads twenty cases.
    """
    context, console, well = open_context(cli), open_console(), True
    checks = dict(_CHECKS)
    if model is not None:
        checks["reader"] = partial(_try_reader, model=model)
    for name, look in checks.items():
        try:
            said, fine = look(context), True
        except TopicLoomError as error:
            said, fine = str(error), False
        except Exception as error:  # noqa: BLE001 - a failure is a result to show
            said, fine = describe_error(error), False
        well = well and fine
        if as_json:
            print_json([{"check": name, "ok": fine, "found": said}])
        else:
            row = Table.grid(padding=(0, 1))
            row.add_column(no_wrap=True, width=11)
            row.add_column(overflow="fold")
            mark = ("✓", "green") if fine else ("✗", "bold red")
            row.add_row(
                Text.assemble(mark, (f" {say(name)}", "bold")), Text(to_one_line(say(said)))
            )
            console.print(row)
    if not well:
        raise SystemExit(1)


def _name_versions(context: CliContext) -> str:
    named = [f"{package} {version(package)}" for package in _PACKAGES]
    return ", ".join([f"topicloom {_find_own()}", f"Python {platform.python_version()}", *named])


def _find_own() -> str:
    try:
        return version("topicloom")
    except PackageNotFoundError:
        return "(not installed)"


def _list_extras(context: CliContext) -> str:
    here = {module: find_spec(module) is not None for module in _EXTRAS}
    there = ", ".join(say(what) for m, (what, _) in _EXTRAS.items() if here[m]) or say("none")
    missing = ", ".join(f"{say(w)} ({how})" for m, (w, how) in _EXTRAS.items() if not here[m])
    if missing:
        return FilledText(
            "installed: {there}; not installed: {missing}", there=there, missing=missing
        )
    return FilledText("installed: {there}", there=there)


def _list_settings(context: CliContext) -> str:
    names = sorted(name for name in os.environ if name.startswith("TOPICLOOM_"))
    if not names:
        return "all settings have their defaults: no variable TOPICLOOM_... is set"
    return FilledText("set in the environment: {names}", names=", ".join(names))


def _try_folder(context: CliContext) -> str:
    folder = context.folder
    probe = folder / ".doctor"
    with reachable(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.write_bytes(b"written")
        probe.unlink()
        free = shutil.disk_usage(folder).free
        shared = folder.stat().st_mode & 0o077
    if os.name == "posix" and shared:
        raise StorageUnavailableError(
            "{folder} is open to other users of this machine: chmod 700 closes it", folder=folder
        )
    return FilledText(
        "{folder} can be written to, {free:,.0f} GB are free", folder=folder, free=free / 1e9
    )


def _read_sessions(context: CliContext) -> str:
    with context.open_checkpoints(reading=True) as saver:
        saver.get_tuple(name_thread("topicloom:doctor"))
    stored = context.storage.sessions()
    sessions = count_of(len(stored), "session")
    return FilledText("{sessions}. To check what is stored: topicloom check", sessions=sessions)


def _try_encoder(context: CliContext) -> str:
    embedder = open_embedder(context.settings.embedder)
    began = time.perf_counter()
    embedder.embed(["The jar stands in the cellar.", "罐子在地窖里。"])
    seconds = time.perf_counter() - began
    return FilledText(
        "two sentences were embedded in {seconds:.2f} s by {encoder}",
        seconds=seconds,
        encoder=embedder.fingerprint,
    )


def _ask_model(context: CliContext) -> str:
    models = choose_models(context.settings)
    name, model = find_reply_model(context.settings), models.of("responder")
    if name is None or model is None:
        return describe_model(context.settings)
    chat = open_role_model(context.settings, models, "responder", model)
    began = time.perf_counter()
    chat.invoke("Say yes.")
    seconds = time.perf_counter() - began
    return FilledText("{model} answered in {seconds:.1f} s", model=name, seconds=seconds)


def _try_reader(context: CliContext, model: str) -> str:
    use, said = describe_trial(try_reader(open_reader(context.settings, model)))
    if use not in ("decide", context.settings.readers):
        raise ConfigurationError(said)
    return said


def _describe_terminal(context: CliContext) -> str:
    console = open_console()
    width, encoding, colours = console.width, console.encoding, console.color_system
    if not colours:
        bare = "{width} columns, {encoding}, no colours"
        return FilledText(bare, width=width, encoding=encoding)
    coloured = "{width} columns, {encoding}, {colours} colours"
    return FilledText(coloured, width=width, encoding=encoding, colours=colours)


_CHECKS: dict[str, Callable[[CliContext], str]] = {
    "versions": _name_versions,
    "extras": _list_extras,
    "settings": _list_settings,
    "terminal": _describe_terminal,
    "folder": _try_folder,
    "sessions": _read_sessions,
    "encoder": _try_encoder,
    "model": _ask_model,
}


def run_check(cli: CliOptions, name: str | None, *, as_json: bool) -> None:
    """Print what is wrong with a session, or with all; exits with 1 if anything is."""
    context, console = open_context(cli), open_console(quiet=as_json)
    stored = context.storage.sessions()
    if name is not None:
        context.check_session(name)
    names = stored if name is None else [name]
    with context.open_bare_graph(reading=True) as (graph, _):
        faults = [(one, fault) for one in names for fault in check_session(graph, name_thread(one))]
    _print_faults(console, faults, as_json=as_json)
    if faults:
        raise typer.Exit(1)
    print_dim(
        console, "nothing is wrong with {names}", names=", ".join(names) or say("no sessions")
    )


def run_repair(cli: CliOptions, name: str, *, as_json: bool) -> None:
    """Make anew what can be, and say it; exits with 1 if anything else is wrong."""
    context, console = open_context(cli), open_console(quiet=as_json)
    context.check_session(name)
    with context.open_bare_graph() as (graph, _):
        faults = repair_session(graph, name_thread(name))
    _print_faults(console, [(name, fault) for fault in faults], as_json=as_json)
    left = [fault for fault in faults if not fault.mend]
    print_dim(
        console, "mended {mended}, left {left}", mended=len(faults) - len(left), left=len(left)
    )
    if left:
        raise typer.Exit(1)


def _print_faults(console: Console, faults: Sequence[tuple[str, Fault]], *, as_json: bool) -> None:
    if as_json:
        print_json({"session": session, **asdict(fault)} for session, fault in faults)
    for session, fault in faults:
        repaired = FilledText(
            "; `topicloom repair {session}`: {mend}", session=session, mend=FilledText(fault.mend)
        )
        mend = say(repaired) if fault.mend else ""
        print_line(console, f"{session}: {fault.place}: {say(fault.what)}{mend}")
