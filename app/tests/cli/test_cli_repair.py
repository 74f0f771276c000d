"""`topicloom check` and `topicloom repair`: a session whose transcript is whole always opens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, Run, assert_one_line, replay_recording
from sessions import check_kept

from topicloom import Settings
from topicloom_app.cli.context import make_context


@pytest.fixture
def talked(run: Run, recording: Path) -> Callable[..., Outcome]:
    """A session with topics, references and receipts; gives more of it, by a recording."""
    arguments = ("--session", "talk", "--no-questions", "--window", "1000")

    def replay(limit: int) -> Outcome:
        return run("replay", str(recording), *arguments, "--limit", str(limit))

    replay_recording(run, recording, "--limit", "26")
    return replay


def folder_of(tmp_path: Path) -> Path:
    return tmp_path / "sessions" / "talk"


def assert_whole(tmp_path: Path) -> list[str]:
    """Every message is there once, word for word; returns all texts."""
    context = make_context(tmp_path / "sessions", Settings())
    session, store = context.read_session("talk")
    return [message.text for message in check_kept(store, session)]


def cut(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) // 2]))


def spoil(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'":', b'_":', 1)
    path.write_bytes(b"".join(lines))


@pytest.mark.slow
def test_faults_are_told_in_chinese(
    run: Run,
    talked: Callable[[int], Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder_of(tmp_path) / "ranges.jsonl").unlink()
    spoil(folder_of(tmp_path) / "roster.jsonl")
    monkeypatch.setenv("TOPICLOOM_LANGUAGE", "zh")
    found = run("check", "talk")
    assert found.code == 1
    assert "的链 'ranges' 里没有条目" in found.out
    assert "`topicloom repair talk`：所有消息回到未归入话题的部分" in found.out
    assert "和写入时不一样" in found.out
    assert not re.search("belongs|written|made anew", found.out)


SIDES = ["turns", "ledger", "ranges", "roster"]


@pytest.mark.slow
@pytest.mark.parametrize("harm", [Path.unlink, cut, spoil])
@pytest.mark.parametrize("side", SIDES)
def test_a_side_file_is_made_anew(
    run: Run,
    talked: Callable[[int], Outcome],
    tmp_path: Path,
    side: str,
    harm: Callable[[Path], None],
) -> None:
    before = assert_whole(tmp_path)
    transcript = folder_of(tmp_path) / "transcript.jsonl"
    written = transcript.read_bytes()
    assert run("check").code == 0
    harm(folder_of(tmp_path) / f"{side}.jsonl")
    found = run("check", "talk", "--json")
    assert found.code == 1
    faults = [json.loads(line) for line in found.out.splitlines()]
    assert {fault["place"] for fault in faults if fault["mend"]} == {side}
    mended = run("repair", "talk")
    assert side in mended.out
    assert transcript.read_bytes() == written
    assert not [
        f for f in map(json.loads, run("check", "talk", "--json").out.splitlines()) if f["mend"]
    ]
    assert assert_whole(tmp_path) == before
    assert talked(32).code == 0
    assert assert_whole(tmp_path)[: len(before)] == before
    assert len(assert_whole(tmp_path)) == 32


@pytest.mark.slow
def test_a_turn_names_the_way_out_and_goes_on_after_it(
    run: Run, talked: Callable[[int], Outcome], tmp_path: Path
) -> None:
    (folder_of(tmp_path) / "turns.jsonl").unlink()
    assert_one_line(talked(28), "chain 'turns'", "topicloom repair talk")
    assert run("repair", "talk").code == 0
    assert talked(32).code == 0
    assert len(assert_whole(tmp_path)) == 32


@pytest.mark.slow
@pytest.mark.usefixtures("talked")
def test_the_transcript_is_not_made_up(run: Run, tmp_path: Path) -> None:
    path = folder_of(tmp_path) / "transcript.jsonl"
    cut(path)
    (folder_of(tmp_path) / "turns.jsonl").unlink()
    left = path.read_bytes()
    assert run("check", "talk").code == 1
    assert_one_line(run("repair", "talk"), "the transcript of session 'talk' is damaged", "backup")
    assert path.read_bytes() == left


@pytest.mark.slow
@pytest.mark.usefixtures("talked")
def test_a_torn_tail_is_set_aside_and_nothing_is_wrong_then(run: Run, tmp_path: Path) -> None:
    path = folder_of(tmp_path) / "transcript.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"torn')
    assert "transcript.jsonl.torn" in run("check", "talk").out
    assert run("check", "talk").code == 0
    assert path.read_bytes() == whole


def test_without_checkpoints_it_goes_on_from_what_was_stored(
    run: Run, talked: Callable[[int], Outcome], tmp_path: Path
) -> None:
    before = assert_whole(tmp_path)
    for file in (tmp_path / "sessions").glob("checkpoints.sqlite*"):
        file.unlink()
    found = run("check", "talk")
    assert (found.code, "topicloom repair talk" in found.out) == (1, True)
    assert run("repair", "talk").code == 0
    assert assert_whole(tmp_path) == before
    assert run("check", "talk").code == 0
