"""Every format of exports: a small sample of it, read as the file of its name says.

A new format is a reader in `recordings/formats`, a sample here, and what is expected of it.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from importing import fill_spool, list_messages
from tables import each_row

from topicloom.hosting import parse_iso_seconds
from topicloom_app.recordings.exported import ExportedConversation
from topicloom_app.recordings.exports import read_exports
from topicloom_app.recordings.formats.known import FORMATS

SAMPLES, EXPECTED = (Path(__file__).parent / name for name in ("samples", "expected"))
FILES = sorted(SAMPLES.iterdir())


def describe(conversation: ExportedConversation) -> dict[str, Any]:
    """All of a conversation that a user sees."""
    conversation.fill_times(UTC)
    messages = [
        " | ".join(
            [
                f"{m.type} {m.name}" if m.name else m.type,
                m.additional_kwargs.get("time", "-"),
                str(m.content),
            ]
        )
        for m in conversation.messages
    ]
    return {
        "format": conversation.format,
        "title": conversation.title,
        "name": conversation.name,
        "messages": messages,
        "left_out": {reason: n for reason, n in conversation.skipped.items() if n},
        "not_understood": dict(conversation.unread.counts),
    }


def read_samples(path: Path) -> Iterator[dict[str, Any]]:
    return map(describe, read_exports([path]))


@each_row("path", FILES)
def test_each_sample_is_read_as_expected(path: Path) -> None:
    expected = EXPECTED / f"{path.stem}{path.suffix.replace('.', '-')}.json"
    assert list(read_samples(path)) == json.loads(expected.read_text("utf-8"))


def test_each_format_has_a_sample() -> None:
    read = {c.format for path in FILES for c in read_exports([path])}
    assert read - {""} == set(FORMATS)


def list_texts(path: Path) -> list[list[str]]:
    return [row["messages"] for row in read_samples(path) if row["messages"]]


@pytest.mark.parametrize("path", [p for p in FILES if p.is_file()], ids=lambda path: path.name)
def test_the_content_tells_the_format_and_not_the_name(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "something"
    shutil.copy(path, other)
    assert list_texts(other) == list_texts(path)


def test_all_at_once_in_a_folder_and_in_an_archive(tmp_path: Path) -> None:
    """They come in the order of time over everything, each message once."""
    packed = tmp_path / "all.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(p for p in SAMPLES.rglob("*") if p.is_file()):
            archive.write(path, str(path.relative_to(SAMPLES)))
    alone = sorted(str(m.content) for path in FILES for m in list_messages(path))
    for whole in (SAMPLES, packed):
        with fill_spool(whole) as spool:
            pieces = list(spool.pieces())
        assert sorted(str(m.content) for piece in pieces for m in piece.messages) == alone
        titled = [piece.messages[0] for piece in pieces if piece.chat.title]
        times = [parse_iso_seconds(m.additional_kwargs["time"]) or 0.0 for m in titled]
        assert times == sorted(times)
        assert not spool.summary.unread.counts
        assert spool.summary.skipped["files of the export that hold no conversation"] == 1


BRANCHES = sorted(EXPECTED.glob("*.branches"))


@each_row("path", BRANCHES)
def test_other_branches_are_conversations_of_their_own(path: Path) -> None:
    sample = SAMPLES / path.stem
    shown, *others = read_exports([sample], branches=True)
    (alone,) = read_exports([sample])
    assert [m.content for m in shown.messages] == [m.content for m in alone.messages]
    said = [str(m.content) for other in others for m in other.messages]
    assert said == path.read_text("utf-8").splitlines()
    assert [other.title for other in others] == [f"{shown.title} (branch 2)"]
    assert "other branches, edited or answered again" not in shown.skipped
