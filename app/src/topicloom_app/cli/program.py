"""The program `topicloom`: characters, warnings and errors on a terminal, and exit codes.

Distributions of their own add commands by entry points in the group `topicloom.commands`: each a
Typer app, or a function that is a command. So does the laboratory, with `eval`, `train` and `tune`.
"""

from __future__ import annotations

import codecs
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from io import TextIOWrapper
from os import environ
from typing import Any, cast
from unicodedata import east_asian_width

import typer
from typer.main import get_command

from topicloom import ConfigurationError, TopicLoomError, TopicLoomWarning
from topicloom_app.cli.app import app
from topicloom_app.cli.words import speak_chinese, translate_help, wants_chinese

LABORATORY = frozenset({"eval", "train", "tune"})
"""Commands of topicloom-lab."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, by default that of the command line, and exit by `SystemExit`.

    The code is 0 when all went well; 1 if `check` or `doctor` found something wrong, or `repair`
    left it; 2 for what the user can put right, said in one line; 130 after Ctrl-C.
    """
    codecs.register_error("topicloom", _replace_character)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A byte or character that the terminal does not know must not end a conversation.
            stream.reconfigure(errors="topicloom")
    warnings.showwarning = cast("Any", _show_warning)
    given = list(sys.argv[1:] if arguments is None else arguments)
    packages, chinese = _add_plugins(), wants_chinese(given, environ)
    with speak_chinese(packages) if chinese else nullcontext():
        try:
            program = get_command(app)
            if chinese:
                translate_help(typer.Context(program, **program.context_settings))
            program(given, prog_name="topicloom")
        except TopicLoomError as error:
            from topicloom_app.cli.console import show_error

            show_error(error)
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            raise SystemExit(130) from None


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    from topicloom_app.cli.console import show_error

    text = message.args[0] if isinstance(message, TopicLoomWarning) else str(message)
    show_error(text, "warning: ", "yellow")


_ASCII = str.maketrans("●○▁▃▅█✓✗→›·•–—‘’“”…─×", "*o.:|#+x>>-*--''\"\"~-x")
"""Signs of as many columns for what terminals without Unicode do not have."""


def _replace_character(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that a terminal does not have, and for bytes that it does not."""
    if not isinstance(error, UnicodeEncodeError):
        return codecs.replace_errors(error)  # type: ignore[return-value]
    text = error.object[error.start : error.end].translate(_ASCII)
    unknown = ("??" if east_asian_width(c) in "WF" else "?" for c in text)
    return "".join(c if c.isascii() else u for c, u in zip(text, unknown, strict=True)), error.end


@cache
def _add_plugins() -> tuple[str, ...]:
    """Add the commands of other distributions; returns the packages of all commands."""
    plugins = entry_points(group="topicloom.commands")
    add_commands(app, plugins)
    return __package__, *sorted({plugin.module.rpartition(".")[0] for plugin in plugins})


def add_commands(to: typer.Typer, plugins: Iterable[EntryPoint]) -> None:
    """Add commands under their names; those of a laboratory that is missing say how to get it."""
    missing = set(LABORATORY)
    for plugin in plugins:
        missing.discard(plugin.name)
        found = plugin.load()
        if isinstance(found, typer.Typer):
            to.add_typer(found, name=plugin.name)
        else:
            to.command(plugin.name)(found)
    anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    for name in sorted(missing):
        to.command(name, hidden=True, context_settings=anything)(_missing)


def _missing(context: typer.Context) -> None:
    raise ConfigurationError(
        "`topicloom {command}` is part of the laboratory:"
        " pip install ./lab, in the folder of the checkout",
        command=context.info_name,
    )
