"""A reader beside one who archives and restores: the mover comes between any two lines of it.

No luck is needed: the reader is run again for each of its lines, and what is moved is moved before
that line. Where the reader holds the lock, no other process could move anything.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from filelock import FileLock, Timeout

import topicloom.storage
from topicloom import FileStorage, Storage

pytestmark = pytest.mark.slow

MOVES = ("jsonl.py", "stored_chain.py", "files.py", "disk.py")
SOURCES = {str(Path(topicloom.storage.__file__).with_name(name)) for name in MOVES}
CHAIN = "transcript"
TEXTS = ["a", "b", "c"]


def run_with_steps(
    act: Callable[[], object], steps: dict[int, Callable[[], None]], within: str = ""
) -> int:
    """Do something; before the nth line of the code that moves and reads, take the nth step.

    Only lines within a function of that name count, if one is given. Returns how many there were.
    """
    lines = 0
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        code = frame.f_code
        if code.co_filename not in SOURCES or (within and code.co_name != within):
            return None
        if event == "line":
            lines += 1
            if lines in steps:
                sys.settrace(None)
                steps[lines]()
                sys.settrace(trace)
        return trace

    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return lines


class Place:
    """A chain of three entries, one who purges a fourth by writing the file anew, and readers."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._log = self.reopen().open("s")
        self.head = self._log.append(CHAIN, None, [{"text": text} for text in TEXTS])
        self._other = str(self._log.append(CHAIN, None, [{"text": "other" * 9}]))

    def reopen(self) -> FileStorage:
        """Its storage, as another process would open it."""
        return FileStorage(self._root, fsync=False)

    def purge_other(self) -> None:
        self._log.purge(CHAIN, [self._other])

    def unless_locked(self, act: Callable[[], None]) -> Callable[[], None]:
        def step() -> None:
            try:
                FileLock(self._root / "s/.lock", timeout=0).acquire().lock.release()
            except Timeout:
                return
            act()

        return step

    def read(self, storage: Storage) -> None:
        log = storage.open("s")
        found = log.read(CHAIN, log.refs(CHAIN, self.head))
        assert [body["text"] for body in found] == TEXTS
        assert log.reports() == []


@pytest.mark.parametrize("warm", [False, True])
def test_a_purge_before_any_line(tmp_path: Path, warm: bool) -> None:
    line, lines = 0, 1
    while line < lines:
        line += 1
        place = Place(tmp_path / f"root {line}")
        reader = place.reopen()
        if warm:
            place.read(reader)
        steps = {line: place.unless_locked(place.purge_other)}
        lines = run_with_steps(partial(place.read, reader), steps)
    assert line > 20


def test_a_file_that_was_written_anew_is_not_read_from_the_middle(tmp_path: Path) -> None:
    """Where a line began before, one that looks like its end begins now."""
    storage = FileStorage(tmp_path, fsync=False)
    log, reader = storage.open("s"), FileStorage(tmp_path, fsync=False).open("s")
    head = log.append(CHAIN, None, [{"text": "a"}])
    nested = log.append(CHAIN, head, [{"x": {"text": "b" * 50}}])
    path = tmp_path / "s/transcript.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    assert reader.read(CHAIN, [str(nested)]) == [{"x": {"text": "b" * 50}}]
    # As a purge of the first entry may: it is now shorter by what stood before the inner brace.
    shift = second.index(b"{", 1)
    path.unlink()
    path.write_bytes(b"#" * (len(first) - shift - 1) + b"\n" + second + first)
    assert reader.read(CHAIN, [str(nested)]) == [{"x": {"text": "b" * 50}}]
