"""What commands print can be had as JSON, an object a line and nothing else."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest
import typer
from command_line import Run, read_rows, replay_recording

from topicloom_app.cli.app import app
from topicloom_app.cli.topic import app as topic_app

WITHOUT = {"chat", "demo", "serve", "ui", "mcp", "export"}
"""What talks, serves or writes documents."""


def list_commands(commands: typer.Typer) -> dict[str, bool]:
    """The package's commands, and if they have the option."""
    functions = [c.callback for c in commands.registered_commands if c.callback and not c.hidden]
    own = [f for f in functions if f.__module__.startswith("topicloom_app.")]
    return {f.__name__: "json" in signature(f).parameters for f in own}


def test_every_command_that_prints_has_it() -> None:
    assert {name for name, has in list_commands(app).items() if not has} == WITHOUT
    assert all(list_commands(topic_app).values())


@pytest.mark.slow
def test_a_replay_is_given_as_json_lines(run: Run, recording: Path) -> None:
    session, *questions = read_rows(run, "replay", str(recording), "--window", "1000")
    assert session["messages"] == 32
    assert session["topics"]
    assert [q["expected"] for q in questions] == ["140", "1", "4"]
    assert questions[1]["complete"]
    assert not questions[2]["evidence"][0]["found"]


@pytest.mark.slow
def test_what_changes_a_session(run: Run, recording: Path, tmp_path: Path) -> None:
    replay_recording(run, recording)
    assert read_rows(run, "memory", "talk", "--out", str(tmp_path / "files"))[0]["written"]
    assert "Lake" in read_rows(run, "topic", "rename", "talk", "t1", "Lake")[0]["event"]
    assert "Lake" in read_rows(run, "topic", "undo", "talk")[0]["event"]
    (tmp_path / "sessions" / "talk" / "turns.jsonl").unlink()
    wrong = read_rows(run, "check", "talk", code=1)
    assert read_rows(run, "repair", "talk") == wrong


@pytest.mark.slow
@pytest.mark.parametrize(("sure", "left"), [((), 32), (("--yes",), 30)])
def test_what_goes_is_named_and_goes_only_if_it_is_sure(
    run: Run, recording: Path, sure: tuple[str, ...], left: int
) -> None:
    replay_recording(run, recording)
    (row,) = read_rows(run, "purge", "talk", "--message", "m1-m2", *sure)
    assert (row["messages"], row["removed"], row["left"]) == (["m1", "m2"], bool(sure), [])
    said = [m for m in read_rows(run, "transcript", "talk") if m["text"]]
    assert len([m for m in said if "removed" not in m["text"]]) == left
    assert read_rows(run, "delete", "talk", *sure) == [{"session": "talk", "deleted": bool(sure)}]
    assert len(read_rows(run, "sessions")) == (0 if sure else 1)


def test_an_import_is_given_as_json_and_adds_nothing_twice(run: Run, tmp_path: Path) -> None:
    (tmp_path / "said.jsonl").write_text('{"role": "user", "content": "hello"}\n', "utf-8")
    for recorded in (1, 0):
        (row,) = read_rows(run, "import", "jsonl", str(tmp_path / "said.jsonl"), "--session", "old")
        assert (row["recorded"], row["there_already"]) == (recorded, 1 - recorded)
        assert row["sessions"] == ["old"]
