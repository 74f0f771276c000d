"""What commands say: English as it stands in the code, or Chinese by gettext's catalogues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from locale import getlocale
from typing import Any

from rich.console import Group
from rich.table import Table
from typer import Context
from typer.core import TyperArgument, TyperOption

from topicloom.hosting import FilledText

_ENGLISH = NullTranslations()
_catalogue = _ENGLISH
"""What commands speak by: nothing while they speak English."""


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


TYPER_MESSAGES = (
    "Usage: {command} [OPTIONS] COMMAND [ARGS]...",
    "Usage: {command} [OPTIONS] {arguments}",
    "Usage: {command} [OPTIONS]",
    "Missing argument {name}.",
    "Missing option {name}.",
    "No such command {name}. Did you mean {others}?",
    "No such command {name}.",
    "No such option: {name} (Possible options: {others})",
    "No such option: {name}",
    "Got unexpected extra argument(s) ({arguments})",
    "Option {name} requires an argument.",
    "Option {name} does not take a value.",
    "Invalid value for {name}: Value error, {value} is not one of {known}.",
    "Invalid value for {name}: Input should be greater than or equal to {least}",
    "Invalid value for {name}: Input should be less than or equal to {most}",
    "Invalid value for {name}: Input should be a valid integer,"
    " unable to parse string as an integer",
    "Invalid value for {name}: {problem}",
)
"""What Typer says with values in it, of which it passes on the whole sentence alone. The first that
fits counts."""


@contextmanager
def speak_chinese(packages: Iterable[str]) -> Iterator[None]:
    """Say in Chinese what the catalogues of some packages have, Typer's own words among it.

    Typer looks its words up by gettext, but once, when it is imported, and most of them are of
    messages that only their highlighter passes on. So its module for help has other values as long
    as a command runs; `app/tests/cli/test_cli_chinese.py` names the one that is gone.
    """
    global _catalogue
    from typer import rich_utils

    _catalogue = load_catalogues(packages)
    highlight = rich_utils.highlighter
    replaced: dict[str, Any] = {
        "Table": _FoldingTable,
        "Columns": lambda parts: Group(*parts),
        "highlighter": lambda text: highlight(_say_of_typer(text)),
        **{name: say(getattr(rich_utils, name)) for name in TYPER_TEXTS},
    }
    kept = {name: getattr(rich_utils, name) for name in replaced}
    vars(rich_utils).update(replaced)
    try:
        yield
    finally:
        vars(rich_utils).update(kept)
        _catalogue = _ENGLISH


def load_catalogues(packages: Iterable[str]) -> NullTranslations:
    """The Chinese catalogues of some packages in one; the first that has a text counts.

    Each stands in the package as `locale/zh/LC_MESSAGES/NAME.mo`, where NAME is that of the
    distribution's own package, such as `topicloom_app`.
    """
    found = NullTranslations()
    for package in packages:
        domain = package.partition(".")[0]
        folder = files(package) / "locale" / "zh" / "LC_MESSAGES"
        if (file := folder / f"{domain}.mo").is_file():
            with file.open("rb") as stream:
                found.add_fallback(GNUTranslations(stream))
    return found


def speaks_chinese() -> bool:
    """True while commands speak Chinese."""
    return _catalogue is not _ENGLISH


class _FoldingTable(Table):
    """A table that cuts nothing: Chinese has no spaces at which it could be broken."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*cells, **options)
        for column in self.columns:
            column.overflow = "fold"


def say(text: str, /, **values: object) -> str:
    """A text in the language of commands, with its values put in; as it is without a translation.

    Args:
        text: What catalogues have: a sentence, or a template for `str.format` if there are values.
            Of a `FilledText` it is its template.
        values: What stands in the template.
    """
    if isinstance(text, FilledText) and not values:
        return say(text.template, **text.values)
    found = _catalogue.gettext(text) if text else text
    said = {name: say(v) if isinstance(v, FilledText) else v for name, v in values.items()}
    return found.format(**said) if said else found


def say_plural(one: str, many: str, count: int) -> str:
    """One of two templates by a count, which is `{count}` in them, in the language of commands."""
    return _catalogue.ngettext(one, many, count).format(count=count)


def _say_of_typer(text: str) -> str:
    """A text of Typer in the language of commands."""
    for template in TYPER_MESSAGES:
        if found := _make_pattern(template).fullmatch(text):
            return say(template, **found.groupdict())
    return say(text)


@cache
def _make_pattern(template: str) -> re.Pattern[str]:
    """What a template looks like when it is filled; a group for each value, by its name."""
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*)", re.escape(template)))


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
