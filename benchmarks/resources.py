"""The memory and the time of processes, and the size of a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def resident_mb(pid: int | None = None) -> float:
    """Memory of a process, or of this one, that is in RAM now, in MB; 0 where nobody says."""
    try:
        pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text("ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU seconds of processes so far, with those of their children that have ended."""
    ticks = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except OSError:  # ended meanwhile
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def list_family(parent: int) -> list[int]:
    """The ids of a process and of its children."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii").split()
    return [parent, *map(int, children)]


def bytes_in(folder: Path, *, but: str = "") -> int:
    """Bytes of all files of a folder.

    Args:
        folder: Looked through with all that is in it.
        but: Beginning of the names of files that do not count; none if empty.
    """
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and not (but and file.name.startswith(but))
    )
