"""What commands say: English as it stands in the code, or Chinese by a catalogue beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from locale import getlocale
from typing import Any

from rich.console import Group
from rich.table import Table
from typer import Context
from typer.core import TyperArgument, TyperOption

_chinese: dict[str, str] = {}
"""What is said in Chinese while a command runs, the English with most words first."""


def wants_chinese(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """True if commands are to speak Chinese: as asked for, or else as the terminal does."""
    given = re.search(r"\0--language[=\0](\w+)", "\0".join(["", *arguments]))
    asked = given[1] if given else environment.get("TOPICLOOM_LANGUAGE")
    if asked in ("en", "zh"):
        return asked == "zh"
    set_ = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    language = next(filter(None, set_), None) or getlocale()[0] or ""
    return language.lower().startswith(("zh", "chinese"))


TYPER_TEXTS = (
    "ABORTED_TEXT",
    "ARGUMENTS_PANEL_TITLE",
    "COMMANDS_PANEL_TITLE",
    "DEFAULT_STRING",
    "ERRORS_PANEL_TITLE",
    "OPTIONS_PANEL_TITLE",
    "REQUIRED_LONG_STRING",
    "RICH_HELP",
)
"""Texts of `typer.rich_utils`. Typer takes them from gettext once, when it is imported, and has no
other way to change them for a run; a test holds that they and what else is replaced are there."""


@contextmanager
def speak_chinese(packages: Iterable[str]) -> Iterator[None]:
    """Say in Chinese what the catalogues of some packages have, Typer's own words among it.

    Typer looks its words up by gettext, but once, when it is imported, and most of them are of
    messages that only their highlighter passes on. So its module for help has other values as long
    as a command runs; `tests/cli/test_cli_chinese.py` names the one that is gone.
    """
    from typer import rich_utils

    rows = {key: row for package in packages for key, row in load_catalogue(package).items()}
    _chinese.update(sorted(rows.items(), key=lambda row: -len(row[0])))
    highlight = rich_utils.highlighter
    replaced: dict[str, Any] = {
        "Table": _FoldingTable,
        "Columns": lambda parts: Group(*parts),
        "highlighter": lambda text: highlight(say(text)),
        **{name: say(getattr(rich_utils, name)) for name in TYPER_TEXTS},
    }
    kept = {name: getattr(rich_utils, name) for name in replaced}
    vars(rich_utils).update(replaced)
    try:
        yield
    finally:
        vars(rich_utils).update(kept)
        _chinese.clear()


class _FoldingTable(Table):
    """A table that cuts nothing: Chinese has no spaces at which it could be broken."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*cells, **options)
        for column in self.columns:
            column.overflow = "fold"


def say(text: str) -> str:
    """The text, each line of it in Chinese if commands speak it and the catalogue has the line."""
    return "\n".join(map(_translate, text.split("\n"))) if _chinese else text


def _translate(line: str) -> str:
    if line in _chinese:
        return _chinese[line]
    for english, chinese in _chinese.items():
        head, place, _ = english.partition("{")
        if place and line.startswith(head) and (found := _make_pattern(english).fullmatch(line)):
            return _fill(chinese, found.groups())
    return line


def _fill(chinese: str, values: Sequence[str]) -> str:
    rest = iter(values)
    return _PLACE.sub(lambda place: values[int(place[1]) - 1] if place[1] else next(rest), chinese)


_PLACE = re.compile(r"\{(\d?)\}")


@cache
def _make_pattern(english: str) -> re.Pattern[str]:
    pattern = re.escape(english).replace(r"\{\}", "(.*)").replace(r"\{\#\}", r"([\d,]+)")
    return re.compile(pattern)


@cache
def load_catalogue(package: str) -> Mapping[str, str]:
    """The Chinese lines in `zh.txt` of a package by the English ones; empty if it has none."""
    file = files(package) / "zh.txt"
    text = file.read_text("utf-8") if file.is_file() else ""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(zip(lines[::2], lines[1::2], strict=True))


def translate_help(context: Context) -> None:
    """Put the help of a command and of those below it into the language of commands."""
    command = context.command
    command.help, command.epilog = map(_say_paragraphs, (command.help, command.epilog))
    for option in command.get_params(context):
        if isinstance(option, TyperArgument | TyperOption):
            option.help = _say_paragraphs(option.help)
    for below in getattr(command, "commands", {}).values():
        translate_help(Context(below, parent=context, **below.context_settings))


def _say_paragraphs(text: str | None) -> str | None:
    """A text of paragraphs that may be broken into lines, in the language of commands."""
    if not text:
        return text
    return "\n\n".join(say(" ".join(part.split())) for part in text.split("\n\n"))
