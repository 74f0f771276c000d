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


@pytest.mark.slow
def test_the_chat_of_the_tutorial_is_what_the_command_prints(run: Run) -> None:
    typed = re.findall(r"^› (.*)$", read_block("a chat"), re.M)
    shown = run("chat", "yue", stdin="\n".join([*typed, "n"])).out
    assert plain(read_block("a chat")) in plain(shown.replace("[y/N]: ", "[y/N]: n\n"))


def test_the_doctor_of_the_tutorial_says_what_the_command_prints(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for versions, what is installed, seconds and the folder's name."""
    monkeypatch.delenv("TOPICLOOM_FSYNC")
    shown, page = (list_checks(text) for text in (run("doctor").out, read_block("doctor")))
    assert list(page) == list(shown)
    for check in ("settings", "sessions", "model"):
        assert page[check] == shown[check]
    assert page["encoder"].partition("sby")[2] == shown["encoder"].partition("sby")[2]
    assert page["extras"].startswith("installed:thecommandseval")
    assert page["folder"].endswith("GBarefree")


def list_checks(text: str) -> dict[str, str]:
    """What `topicloom doctor` says by what it looks at, without blanks: they go by the width."""
    rows = (row.partition(" ") for row in text.split("✓ ")[1:])
    return {name: "".join(said.split()) for name, _, said in rows}


@pytest.mark.slow
def test_what_the_tutorial_made_is_deleted_at_its_end(run: Run) -> None:
    before, _, cleared = PAGE.partition("## Clear up")
    made = set(re.findall(r'(?:topicloom chat |--session |"thread_id": ")(\w+)', before))
    for name in made:
        run("chat", name, stdin="Hi\n")
    names = cleared.partition("topicloom delete ")[2].partition("\n")[0].split()
    shown = run("delete", *names, stdin="y\n").out.replace("[y/N]: ", "[y/N]: y\n")
    assert plain(shown) == plain(read_block("cleared"))
    assert set(names) == made


@pytest.mark.slow
def test_the_program_goes_on_when_it_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOPICLOOM_FOLDER", str(tmp_path))
    for _ in range(2):
        exec(compile(read_block("first.py"), "first.py", "exec"), {})
    assert plain(capsys.readouterr().out) == plain(read_block("first.py, twice"))
