"""Draw what `topicloom demo` leaves on a terminal: `python -m scripts.record_demo`.

Only in English: Rich squeezes wide characters in such a picture.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"
WIDTH = 84
_STEP = re.compile(r"\n|\r|\x1b\[(?:2K|1A|\?25[lh])|(?:(?!\x1b\[(?:2K|1A|\?25)|[\r\n]).)+")
"""Ends of lines, what moves or clears, and what is written into a line."""
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.S)
"""Those of somebody else's server."""


def play(printed: str) -> str:
    """The lines that stand on the terminal in the end."""
    lines, at = [""], 0
    for step in _STEP.findall(printed):
        if step == "\n":
            at += 1
            lines += [""] * (at + 1 - len(lines))
        elif step == "\x1b[1A":
            at -= 1
        elif step == "\x1b[2K":
            lines[at] = ""
        elif step != "\r" and not step.startswith("\x1b[?25"):
            lines[at] += step
    return "\n".join(lines)


def draw() -> str:
    """The picture of the first question, as SVG without fonts of its own."""
    program = Path(sys.executable).with_name("topicloom")
    colours = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    shown = subprocess.run(
        [program, "--language", "en", "demo"], env=colours, check=True, capture_output=True
    )
    first = "\x1b[1;36m› ".join(play(shown.stdout.decode()).split("\x1b[1;36m› ")[:2])
    console = Console(record=True, width=WIDTH, file=StringIO())
    console.print(Text.from_ansi(first.rstrip()))
    picture = console.export_svg(title="topicloom demo", theme=MONOKAI, unique_id="demo")
    return _FONTS.sub("", picture)


if __name__ == "__main__":
    PICTURE.write_text(draw(), "utf-8")
