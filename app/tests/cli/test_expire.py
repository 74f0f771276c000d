"""`topicloom expire`: what is too old is shown, asked for and removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, read_rows, replay_recording

from topicloom import FileStorage


@pytest.fixture
def talked(run: Run, recording: Path) -> str:
    """A session whose messages are of long ago."""
    replay_recording(run, recording)
    return "talk"


@pytest.mark.slow
def test_it_shows_asks_and_removes(run: Run, talked: str, tmp_path: Path) -> None:
    before = run("transcript", talked).out
    for given in (["--dry-run"], []):
        tried = run("expire", talked, "--messages", "1", *given, stdin="n\n")
        assert (tried.code, tried.err) == (0, "")
        assert f"{talked}: " in tried.out
        assert run("transcript", talked).out == before
    done = run("expire", "--messages", "1", "--yes")
    assert done.out.endswith("removed\n")
    assert run("transcript", talked).out != before
    assert run("expire", "--messages", "1", "--yes").out == "nothing was removed\n"
    assert run("check", talked).code == 0


@pytest.mark.slow
def test_as_json_nothing_goes_unless_sure(run: Run, talked: str) -> None:
    (row,) = read_rows(run, "expire", talked, "--messages", "1")
    assert (row["session"], row["removed"]) == (talked, False)
    (gone,) = read_rows(run, "expire", talked, "--messages", "1", "--yes")
    assert (gone["messages"], gone["removed"]) == (row["messages"], True)


def test_it_goes_by_the_settings(run: Run, talked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "say how many days to keep" in run("expire", talked).err
    monkeypatch.setenv("TOPICLOOM_RETENTION__RECEIPTS", "1")
    assert "nothing was removed" in run("expire", talked, "--user", "ann", "--yes").out


def test_a_session_in_use_is_left_for_the_next_time(run: Run, talked: str, tmp_path: Path) -> None:
    with FileStorage(tmp_path / "sessions").lock(talked):
        busy = run("expire", "--messages", "1", "--yes")
    assert "nothing was removed" in busy.out
    assert talked in busy.err
