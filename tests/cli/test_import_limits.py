"""A small file that unpacks to much, or is all brackets, is refused before it is read."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from topicloom.errors import NotAConversationError
from topicloom.recordings.exports import load_entries
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
            load_entries(bomb)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_one_that_is_as_large_as_conversations_are(tmp_path: Path) -> None:
    said = [{"id": str(n), "text": "word " * 20} for n in range(2_000)]
    assert load_entries(pack(tmp_path / "a.zip", json.dumps(said).encode())) == said


def test_a_file_of_brackets(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + "[]," * MOST_NODES + "[]]")
    with pytest.raises(NotAConversationError, match="lists and objects"):
        load_entries(path)
