"""A small file that unpacks to much, or is all brackets, is refused before it is read."""

from __future__ import annotations

import gzip
import json
import lzma
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from topicloom import NotAConversationError
from topicloom_app import load_conversations
from topicloom_app.recordings.exports import read_exports
from topicloom_app.recordings.limits import MOST_NODES, UNPACKED_FREE


def pack(path: Path, text: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", text)
    return path


@pytest.mark.slow
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


PACKERS = [
    pytest.param(".gz", gzip.compress, id="gz"),
    pytest.param(".xz", lambda text: lzma.compress(text, preset=0), id="xz"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "compress"), PACKERS)
def test_a_packed_file_that_unpacks_to_too_much(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    """What was unpacked before is not imported, and no more is unpacked than the limit."""
    said = json.dumps({"messages": [{"role": "user", "content": "word"}]}).encode()
    bomb = tmp_path / f"a.jsonl{ending}"
    bomb.write_bytes(compress(said + b"\n" + b" " * (2 * UNPACKED_FREE)))
    del said
    tracemalloc.start()
    try:
        with pytest.raises(NotAConversationError, match=r"unpacks to 64,0.* bytes"):
            list(read_exports([bomb]))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(NotAConversationError, match=r"unpack it and import the parts"):
        list(load_conversations(bomb))


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "compress"), PACKERS)
def test_a_packed_file_is_read_as_it_was(
    tmp_path: Path, ending: str, compress: Callable[[bytes], bytes]
) -> None:
    said = [{"role": "user", "content": f"{n} {'word ' * 20}"} for n in range(2_000)]
    path = tmp_path / f"a.json{ending}"
    path.write_bytes(compress(json.dumps(said).encode()))
    (found,) = read_exports([path])
    (loaded,) = load_conversations(path)
    assert len(found.messages) == len(loaded.messages) == 2_000


def test_a_packed_file_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b'[{"role": "user", "content": "hello"}]')[:-12])
    (report,) = read_exports([path])
    assert "cannot be read" in str(report.unread)
    with pytest.raises(NotAConversationError, match="cannot be read"):
        list(load_conversations(path))


@pytest.mark.slow
def test_one_that_is_as_large_as_conversations_are(tmp_path: Path) -> None:
    said = [{"role": "user", "content": f"{n} {'word ' * 20}"} for n in range(2_000)]
    (found,) = read_exports([pack(tmp_path / "a.zip", json.dumps(said).encode())])
    assert len(found.messages) == 2_000


@pytest.mark.parametrize(
    ("before", "brackets", "behind"),
    [
        pytest.param('"', "[", '"', id="in a text"),
        pytest.param("", "[],", "[]", id="lists", marks=pytest.mark.long),
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
