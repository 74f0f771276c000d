"""Whatever is wrong with what was given costs one clear line, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from command_line import Run, assert_one_line
from failing_storage import unwritable


@pytest.mark.parametrize("name", ["../../x", "", "a" * 101, "..", "a/b", "a\nb", ".hidden"])
@pytest.mark.parametrize("command", ["chat", "topics", "transcript", "receipt"])
def test_names_that_may_not_become_paths(run: Run, tmp_path: Path, command: str, name: str) -> None:
    assert_one_line(run(command, name), "cannot name a session")
    assert not (tmp_path / "sessions").exists()


@pytest.mark.parametrize("name", ["../../x", ""])
def test_names_to_keep_a_replay_as(run: Run, recording: Path, name: str) -> None:
    outcome = run("replay", str(recording), "--session", name)
    assert_one_line(outcome, "cannot name a session")


@pytest.mark.parametrize("command", ["chat", "topics", "sessions", "replay"])
def test_a_folder_that_is_a_file(run: Run, tmp_path: Path, command: str) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    names = {"topics": ["x"], "replay": ["--session", "x"]}.get(command, [])
    assert_one_line(run(command, *names, folder=blocked), str(blocked), "not a folder")


def test_a_folder_below_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome = run("chat", folder=tmp_path / "file" / "below")
    assert_one_line(outcome, "cannot use", "Choose another")


def test_checkpoints_that_are_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "checkpoints.sqlite").write_bytes(b"no database" * 200)
    assert_one_line(run("topics", "x"), "checkpoints.sqlite", "not a database")
    assert_one_line(run("chat", "x", stdin="hello\n"), "checkpoints.sqlite")


def test_checkpoints_that_are_a_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sessions" / "checkpoints.sqlite").mkdir(parents=True)
    assert_one_line(run("topics", "x"), "checkpoints.sqlite")


READING = (("sessions",), ("check",), ("facts", "talk"), ("review", "talk", "--dry-run"))


def test_what_only_reads_makes_nothing(run: Run, tmp_path: Path) -> None:
    assert [run(*command).code for command in READING] == [0, 0, 2, 2]
    assert_one_line(run("check", "talk"), "no session 'talk'")
    assert run("doctor").code in (0, 1)
    (tmp_path / "sessions").chmod(0o700)
    assert not list((tmp_path / "sessions").iterdir())


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="rights are otherwise")
def test_what_only_reads_works_where_nothing_can_be_written(run: Run) -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        assert run("chat", "talk", stdin="My dog is Rex.\n", folder=folder).code == 0
        assert run("reflect", "talk", "--force", folder=folder).code == 0
        before = [run(*command, folder=folder) for command in READING]
        files = sorted(folder.rglob("*"))
        with unwritable(folder):
            assert [run(*command, folder=folder) for command in READING] == before
            assert_one_line(run("review", "talk", folder=folder), "checkpoints.sqlite")
            assert_one_line(run("chat", "talk", folder=folder), "checkpoints.sqlite")
        assert [done.code for done in before] == [0, 0, 0, 0]
        assert sorted(folder.rglob("*")) == files


@pytest.mark.parametrize(
    ("variable", "value", "parts"),
    [
        ("MODEL", "gpt", ("'gpt'", "openai:gpt-5-mini")),
        ("MODEL", "nobody:gpt", ("'nobody:gpt'",)),
        ("MODEL", "openai:", ("'openai:'",)),
        ("WINDOW", "large", ("TOPICLOOM_WINDOW", "'large'")),
        ("SPLIT__TRIGGER", "7", ("TOPICLOOM_SPLIT__TRIGGER", "'7'")),
        ("SPLIT", "often", ("TOPICLOOM_", "split")),
    ],
)
@pytest.mark.parametrize("command", ["chat", "replay"])
def test_settings_that_cannot_be_used(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    variable: str,
    value: str,
    parts: tuple[str, ...],
) -> None:
    monkeypatch.setenv(f"TOPICLOOM_{variable}", value)
    assert_one_line(run(command), *parts)


def test_a_model_without_a_key(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:gpt-5-mini")
    assert_one_line(run("chat"), "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"id": "a", "messages": [{"ro', "line 1 is not JSON"),
        ('{"id": "a", "messages": []}', "line 1 is no conversation"),
        ('{"some": "thing"}', "no conversation"),
        ("just words", "not JSON"),
        ("[1, 2]", "no role"),
        ("", "empty"),
        ('{"id": "a", "messages": [{"id": "1", "role": "user", "text": " "}]}', "has any text"),
    ],
)
def test_files_that_are_no_conversation(run: Run, tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "file.jsonl"
    file.write_text(text, "utf-8")
    assert_one_line(run("replay", str(file)), str(file), part)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00" * 10])
def test_files_that_are_no_text(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.jsonl").write_bytes(content)
    assert_one_line(run("replay", str(tmp_path / "file.jsonl")), "file.jsonl")


def test_files_that_are_not_there(run: Run, tmp_path: Path) -> None:
    assert_one_line(run("replay", str(tmp_path / "nothing")), "cannot be read")
    assert_one_line(run("replay", str(tmp_path)), "cannot be read")


def test_sessions_that_are_not_there(run: Run, tmp_path: Path) -> None:
    for command in ("topics", "transcript", "receipt"):
        assert_one_line(run(command, "nobody"), "no session 'nobody'", "none yet")
    assert not (tmp_path / "sessions").exists()


def test_a_wrong_option_is_a_usage_error(run: Run) -> None:
    for arguments in (["chat", "--nothing"], ["nothing"], ["replay", "--window", "5"]):
        outcome = run(*arguments)
        assert outcome.code == 2
        assert "Traceback" not in outcome.err


def test_help_and_version(run: Run) -> None:
    assert "replay" in run("--help").out
    assert "N [x>=1000]" in run("replay", "--help").out
    assert run("--version").out.startswith("topicloom ")


@pytest.mark.slow
def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys, topicloom_app.cli;"
        "sys.exit(any(m in sys.modules for m in ('langgraph', 'numpy', 'langchain_core')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


SMALL = ["--window", "1000"]


@pytest.mark.slow
def test_a_terminal_without_unicode_has_signs_of_its_own(recording: Path) -> None:
    program = f"from topicloom_app.cli import main\nmain(['replay', {str(recording)!r}, *{SMALL}])"
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": "ascii", "TOPICLOOM_FSYNC": "false"},
        capture_output=True,
        check=True,
    )
    said = outcome.stdout.decode("ascii")
    assert "* active o dormant - a column" in said
    assert "+ How far around the lake at first?" in said
    assert "?" not in said.partition("What became of")[2].partition("Questions")[0]
