"""What the tutorial shows is what comes when it is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Run, run

__all__ = ["run"]

PAGE = (Path(__file__).parents[2] / "docs" / "start" / "tutorial.md").read_text("utf-8")


def read_block(name: str) -> str:
    """The code that stands below a remark."""
    return PAGE.partition(f"<!-- {name} -->\n```")[2].partition("\n")[2].partition("```")[0]


def plain(text: str) -> str:
    """A text without its layout, on no certain day."""
    return re.sub(r"\d{4}-\d\d-\d\d", "DAY", " ".join(text.split()))


def test_the_chat_of_the_tutorial_is_what_the_command_prints(run: Run) -> None:
    typed = re.findall(r"^› (.*)$", read_block("a chat"), re.M)
    shown = run("chat", "yue", stdin="\n".join([*typed, "n"])).out
    assert plain(read_block("a chat")) in plain(shown.replace("[y/N]: ", "[y/N]: n\n"))


def test_the_program_goes_on_when_it_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOPICLOOM_FOLDER", str(tmp_path))
    for _ in range(2):
        exec(compile(read_block("first.py"), "first.py", "exec"), {})
    assert plain(capsys.readouterr().out) == plain(read_block("first.py, twice"))
