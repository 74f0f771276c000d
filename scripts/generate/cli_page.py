"""The page of the command line, made from the commands' own help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from topicloom_app.cli.app import app

LABORATORY = {"eval", "train", "tune"}
"""Commands that another package adds; its own pages tell of them."""
_HEAD = """# The command line

`topicloom COMMAND --help` shows the same in a terminal. Options of `topicloom` itself stand
before the command: `topicloom --folder /data chat`.

Exit codes: 0 means that all went well. 1 means that `check`, `repair` or `doctor` found something
wrong. 2 means that one line says what is wrong and what you can do about it. 130 means that you
pressed Ctrl-C.

The laboratory (`pip install ./topicloom/lab`) adds `topicloom eval`
([strategies compared](../research/comparison.md)), `topicloom tune` ([tuning](../guides/tuning.md))
and `topicloom train` ([topic boundaries](../research/boundaries.md)).

"""


def make_page() -> str:
    """The page as the commands are now."""
    root: Any = typer.main.get_command(app)
    options = _describe("topicloom", root, "Options of all commands")
    return _HEAD + "\n".join([options, *_sections("topicloom", root)])


def _sections(path: str, group: Any) -> Iterator[str]:
    """A section for each command, those of groups too."""
    for name, command in group.commands.items():
        if name in LABORATORY:
            continue
        if hasattr(command, "commands"):
            yield from _sections(f"{path} {name}", command)
        else:
            yield _describe(f"{path} {name}", command, f"`{path} {name}`")


def _describe(path: str, command: Any, title: str) -> str:
    """A heading, the help, the usage, and a table of arguments and options."""
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name != "help"]
    names = [_argument(p) for p in shown if not _is_option(p)]
    usage = " ".join([path, *names, *(["[OPTIONS]"] if any(map(_is_option, shown)) else [])])
    lines = [f"## {title}", ""]
    if command.callback and not hasattr(command, "commands"):
        lines += [_join(command.help), "", f"```text\n{usage}\n```", ""]
    if shown:
        lines += [
            "| option | what it does |",
            "|---|---|",
            *(f"| {_name(p)} | {_cell(p)} |" for p in shown),
            "",
        ]
    return "\n".join(lines)


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _argument(parameter: Any) -> str:
    """An argument as a usage line has it; one that may be left out is in brackets."""
    name = str(parameter.metavar or parameter.name.upper())
    name += "..." if parameter.nargs < 0 and not name.endswith("...") else ""
    return name if parameter.required else f"[{name}]"


def _name(parameter: Any) -> str:
    """What is typed, so that no line breaks within a name."""
    if not _is_option(parameter):
        return f"`{_argument(parameter)}`"
    return ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])


def _cell(parameter: Any) -> str:
    """What it is, with its default."""
    text = _join(parameter.help or "")
    default = parameter.default
    if default not in (None, False, True, (), []) and not callable(default):
        text += f" Default: `{getattr(default, 'value', default)}`."
    return text.replace("|", "\\|")


def _join(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
