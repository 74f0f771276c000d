"""`topicloom memory`."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, replay_recording

from topicloom import FileStorage, InputError, InvalidNameError, StorageUnavailableError
from topicloom_app.cli.console import CliOptions
from topicloom_app.cli.memory import run_memory


@pytest.fixture
def given(run: Run, recording: Path, tmp_path: Path) -> CliOptions:
    """A folder with a session that has topics."""
    replay_recording(run, recording)
    return CliOptions(folder=tmp_path / "sessions")


@pytest.mark.slow
def test_files_are_written_and_then_left_alone(
    given: CliOptions, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "memory"
    assert given.folder is not None
    with FileStorage(given.folder).lock("talk"):  # as while a chat runs
        run_memory(given, "talk", out, force=False)
    files = sorted(p.name for p in out.iterdir())
    assert f"{len(files)} written, 0 unchanged, 0 removed" in capsys.readouterr().out
    edited = out / files[0]
    edited.write_text(edited.read_text("utf-8") + "Mine.\n", "utf-8")
    run_memory(given, "talk", out, force=False)
    said = capsys.readouterr().out
    assert f"left {files[0]} as it is: it was edited by hand" in said
    assert f"0 written, {len(files) - 1} unchanged" in said
    assert "--force" in said
    run_memory(given, "talk", out, force=True)
    assert "1 written" in capsys.readouterr().out
    assert "Mine." not in edited.read_text("utf-8")


@pytest.mark.slow
def test_what_cannot_be_used_is_said(given: CliOptions, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no session 'none'"):
        run_memory(given, "none", tmp_path / "memory", force=False)
    with pytest.raises(InvalidNameError):
        run_memory(given, "../x", tmp_path / "memory", force=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailableError):
        run_memory(given, "talk", tmp_path / "file", force=False)
