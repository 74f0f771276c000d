"""A small file that unpacks to much, or is all brackets, is refused before it is read."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from topicloom.errors import NotAConversationError
from topicloom.recordings.exports import read_exports
from topicloom.recordings.limits import MOST_NODES, UNPACKED_FREE


def pack(path: Path, text: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", text)
    return path


def test_an_archive_that_unpacks_to_too_much(tmp_path: Path) -> None:
    bomb = pack(tmp_path / "a.zip", b"[" + b" " * (UNPACKED_FREE + 9) + b"]")
    assert bomb.stat().st_size < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(NotAConversationError, match="unpacks to 64,000,011 bytes"):
            list(read_exports([bomb]))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_one_that_is_as_large_as_conversations_are(tmp_path: Path) -> None:
    said = [{"role": "user", "content": f"{n} {'word ' * 20}"} for n in range(2_000)]
    (found,) = read_exports([pack(tmp_path / "a.zip", json.dumps(said).encode())])
    assert len(found.messages) == 2_000


@pytest.mark.parametrize(
    ("before", "brackets", "behind"),
    [
        pytest.param('"', "[", '"', id="in a text"),
        pytest.param("", "[],", "[]", id="lists", marks=pytest.mark.slow),
    ],
)
def test_an_entry_of_brackets(tmp_path: Path, before: str, brackets: str, behind: str) -> None:
    """They are counted before they are read, wherever they stand."""
    entry = before + brackets * (2 * MOST_NODES) + behind
    path = tmp_path / "a.json"
    path.write_text('{"mapping": {"a": [' + entry + "]}}")
    (report,) = read_exports([path])
    assert not report.messages
    assert "lists and objects" in str(report.unread)
