"""The options of every command, and printing to the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from topicloom import InputError
from topicloom.hosting import LanguageChoice
from topicloom_app.cli.words import say, say_plural


@dataclass(frozen=True, slots=True)
class CliOptions:
    """Options of every command; None where nothing was given."""

    folder: Path | None = None
    language: LanguageChoice | None = None
    limits: Sequence[str] = ()
    """Daily limits of commands that ask models, such as `user=200000`."""


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print JSON lines."""
    for row in rows:
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_file(path: Path, parts: Iterable[str]) -> None:
    """Write texts into a file that its owner alone may read; raises `InputError` if it cannot be.

    A file that is there keeps its mode.
    """
    try:
        with open(path, "w", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.writelines(parts)
    except OSError as error:
        raise InputError("cannot write {path}: {error}", path=path, error=error) from error


def open_console(*, quiet: bool = False) -> Console:
    """The console that results are printed on; a quiet one where they are JSON."""
    return Console(highlight=False, quiet=quiet)


def show_error(error: Exception | str, kind: str = "error: ", style: str = "red") -> None:
    """Print an error, or something of another kind, as one line to stderr."""
    text = error if isinstance(error, str) else str(error)
    message = say(kind) + to_one_line(say(text))
    Console(stderr=True, highlight=False).print(Text(message, style=style), soft_wrap=True)


def print_dim(console: Console, message: str, /, **values: object) -> None:
    """Print a line that is not part of the conversation; what it is made from is as in `say`."""
    console.print(Text(say(message, **values), style="dim"))


def print_line(console: Console, message: str, /, *, style: str = "", **values: object) -> None:
    """Print a message as one line, whatever it has of others' words."""
    console.print(Text(to_one_line(say(message, **values)), style=style), soft_wrap=True)


_UNIT = re.compile(r"\n|[^\S\n]+|[\u2e80-\ud7ff\uf900-\uffef]|[^\s\u2e80-\ud7ff\uf900-\uffef]+")
"""A line break, blanks, a character that lines may break behind, a word."""


@dataclass(slots=True)
class ReplyWriter:
    """Writes a reply as it comes: at a terminal indented, and broken between words."""

    console: Console
    writing: bool = False
    """True while a reply stands unfinished."""
    _column: int = 0
    _held: str = ""
    """The word that may go on."""

    def write(self, piece: str) -> None:
        """Write what comes next."""
        self.writing = self.writing or bool(piece)
        if not self.console.is_terminal:
            self.console.out(piece, end="", highlight=False)
            return
        *whole, self._held = _UNIT.findall(self._held + piece) or [""]
        for unit in whole:
            self._put(unit)

    def end(self) -> None:
        """End the reply's last line, if one was begun."""
        if self.writing:
            self._put(self._held)
            self.console.out("")
        self.writing, self._column, self._held = False, 0, ""

    def _put(self, unit: str) -> None:
        width = cell_len(unit)
        if unit == "\n" or (self._column > 2 and self._column + width >= self.console.width):
            self.console.out("")
            self._column = 0
            if unit.isspace():
                return
        indent = "" if self._column or not unit else "  "
        self.console.out(f"{indent}{unit}", end="", highlight=False)
        self._column += len(indent) + width


def print_next(console: Console, what: str, command: str) -> None:
    """Print what to do next, with the command for it as it is called from where the reader is."""
    given = sys.argv[0] if Path(sys.argv[0]).name == "topicloom" else "topicloom"
    program = "topicloom" if which("topicloom") == given else quote(os.path.relpath(given))
    console.print(Text.assemble("\n", (what, "dim"), (f"{program} {command}", "cyan")))


def render_heading(text: str) -> RenderableType:
    """A line that begins a part."""
    return Group(Text(), Rule(Text(say(text), style="bold"), style="dim", align="left"))


def count_of(number: int, what: str) -> str:
    """A number of things in words: 1 message, 2,000 messages."""
    one = f"{{count:,}} {what}"
    return say_plural(one, f"{one}s", number)


def strip_control(text: str) -> str:
    """A text without the characters that would steer the terminal."""
    return _CONTROL.sub("", text)


def to_one_line(text: str) -> str:
    """A text on one line, without what would steer the terminal."""
    return strip_control(" ".join(text.split()))
