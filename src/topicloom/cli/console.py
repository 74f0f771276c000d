"""The options of every command, and printing to the terminal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from topicloom.state.language import LanguageChoice


@dataclass(frozen=True, slots=True)
class CliOptions:
    """Options of every command; None where nothing was given."""

    folder: Path | None = None
    language: LanguageChoice | None = None


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def open_console() -> Console:
    """The console that results are printed on."""
    return Console(highlight=False)


def show_error(error: Exception) -> None:
    """Print an error as one red line."""
    message = f"error: {to_one_line(str(error))}"
    Console(stderr=True, highlight=False).print(Text(message, style="red"), soft_wrap=True)


def print_dim(console: Console, message: str) -> None:
    """Print a line that is not part of the conversation."""
    console.print(Text(message, style="dim"))


def render_heading(text: str) -> RenderableType:
    """A line that begins a part."""
    return Group(Text(), Rule(Text(text, style="bold"), style="dim", align="left"))


def strip_control(text: str) -> str:
    """A text without the characters that would steer the terminal."""
    return _CONTROL.sub("", text)


def to_one_line(text: str) -> str:
    """A text on one line, without what would steer the terminal."""
    return strip_control(" ".join(text.split()))
