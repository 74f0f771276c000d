"""What pages show of the packaged sample, printed by the commands that they name."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from scripts.generate.files import Generated, make_page, replace_part
from scripts.generate.sample import PACKED

_SECONDS = re.compile(r"\d+\.\d s")
"""What differs from run to run, and is left out."""

_RULE = re.compile(r"(.*?)─{9,}")
"""A heading with a rule, which is the shorter the more digits the seconds before it have."""


def list_pages() -> list[Generated]:
    """The pages that show the sample."""
    return [
        make_page("README.md", lambda page: replace_part(page, "demo", _show_demo("en"))),
        make_page("README.zh.md", lambda page: replace_part(page, "demo", _show_demo("zh"))),
        make_page("docs/start/tutorial.md", _fill_tutorial),
    ]


@cache
def _show_demo(language: str) -> str:
    """The first of the questions that are shown."""
    shown = _run(f"--language {language} demo").split("\n  › ")
    return _frame("\n  › ".join(shown[:2]))


def _fill_tutorial(page: str) -> str:
    """The tutorial with what its commands print for a session that holds the sample."""
    with TemporaryDirectory() as folder:
        with ZipFile(PACKED) as packed:
            packed.extractall(folder)

        def run(command: str, typed: str = "") -> str:
            return _run(f"--folder {folder} {command}", typed)

        look = (
            'search lake_house "how high is the worktop" -n 3',
            "quote lake_house m5",
            'topic rename lake_house t1 "The kitchen at the lake"',
            "topic undo lake_house",
        )
        page = replace_part(page, "look", _frame("".join(map(run, look))))
        said = run("chat lake_house", "Who is Bruno?\n")
        receipt, *_ = run("receipt lake_house").split("\nturn ")  # a review's may follow
        asked = f"{said[said.index('› ') :]}{receipt}"
    page = replace_part(page, "ask", _frame(asked))
    return replace_part(page, "demo", _show_demo("en"))


def _run(command: str, typed: str = "") -> str:
    """What a command prints on a terminal of 80 columns."""
    program = Path(sys.executable).with_name("topicloom")
    done = subprocess.run(
        [program, *shlex.split(command)],
        env={**os.environ, "COLUMNS": "80"},
        input=typed,
        text=True,
        capture_output=True,
        check=True,
    )
    return done.stdout


def _frame(printed: str) -> str:
    """What was printed, with lines no wider than a page."""
    printed = _SECONDS.sub("… s", printed).strip("\n")
    lines = [_RULE.sub(lambda rule: rule[1].ljust(80, "─"), line) for line in printed.splitlines()]
    wrapped = (textwrap.wrap(line, 100, subsequent_indent="  ") or [""] for line in lines)
    return "\n".join(["```text", *chain.from_iterable(wrapped), "```"])
