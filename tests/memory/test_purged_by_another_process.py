"""A process purges; another one, which had the session open all the time, serves it no more."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sessions import open_graph, tell, thread

from topicloom import FileStorage, Memory
from topicloom.graph.checkpoints import CHECKPOINTS, LocalCheckpointer
from topicloom.hosting import REMOVED

SECRET = "ZEBRA77"
_BY_STORAGE = """
import sys
from topicloom import FileStorage, Memory
memory = Memory(FileStorage(sys.argv[1], fsync=False), "s", embedder="hashing")
print(*memory.forget("m3").left)
"""


def purge_by_command(folder: Path) -> str:
    program = str(Path(sys.executable).with_name("topicloom"))
    return _run(program, "--folder", str(folder), "purge", "s", "--message", "m3", "--yes")


def purge_by_storage(folder: Path) -> str:
    return _run(sys.executable, "-c", _BY_STORAGE, str(folder))


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def serve(memory: Memory) -> str:
    held = [topic.messages() for topic in memory.topics()]
    return str([memory.quote("m3"), memory.search(SECRET), memory.history(limit=None), held])


@pytest.mark.parametrize(
    "purge", [purge_by_command, pytest.param(purge_by_storage, marks=pytest.mark.slow)]
)
def test_who_has_it_open_serves_it_no_more(tmp_path: Path, purge: Callable[[Path], str]) -> None:
    saver = LocalCheckpointer(tmp_path / CHECKPOINTS)
    graph = open_graph(tmp_path, checkpointer=saver, embedder="hashing")
    said = [f"茶：第{n}次 {SECRET if n == 2 else ''}" for n in range(1, 6)]
    tell(graph, thread(), *said, keep=2)
    alone = Memory(FileStorage(tmp_path, fsync=False), "s", embedder="hashing")
    holders: list[Callable[[], Memory]] = [lambda: alone, lambda: Memory.of(graph, thread())]
    assert all(SECRET in serve(hold()) for hold in holders)
    told = purge(tmp_path)
    assert purge is purge_by_command or "the checkpoints of thread 's', until" in told
    for hold in holders:
        assert SECRET not in serve(hold())
        assert hold().quote("m3").text == REMOVED
    assert SECRET not in str(graph.get_state(thread()).values)
    assert SECRET not in str(tell(graph, thread(), "茶：又一次"))
    assert SECRET not in serve(alone)
    saver.close()
