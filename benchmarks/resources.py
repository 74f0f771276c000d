"""The memory of a process, and the size of a folder."""

from __future__ import annotations

import os
from pathlib import Path


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in MB; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


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
