"""Ends an operation at any place where it is about to change a disk, as a kill would.

Python announces every open, rename and removal before it does them (audit events). In `killed`
the nth of these that would change something under a folder raises instead. What follows in the
process under test must not count on what it remembers: open the storage anew.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CHANGES = {"os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir"}


class Killed(BaseException):
    """The process ends here."""


@dataclass
class _Plan:
    folder: str = ""
    left: int = 0


_plan = _Plan()
_installed: list[bool] = []


@contextmanager
def killed(folder: Path, after: int) -> Iterator[None]:
    """Let `after` changes under a folder happen and raise `Killed` before the next."""
    if not _installed:
        _installed.append(True)
        sys.addaudithook(_hook)
    _plan.folder, _plan.left = str(folder), after
    try:
        yield
    finally:
        _plan.folder = ""


def every_kill(folder: Path, prepare: Callable[[], None], act: Callable[[], None]) -> Iterator[int]:
    """Do something over and over, killed one step later each time, until it gets through.

    Args:
        folder: Where it happens.
        prepare: Makes the folder anew.
        act: What is killed; opens what it works on.

    Yields:
        After each kill, how many steps were done before it.
    """
    for after in range(200):
        prepare()
        try:
            with killed(folder, after):
                act()
        except Killed:
            yield after
        else:
            return
    raise AssertionError("it never gets through")


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _plan.folder or not (event in _CHANGES or _writes(event, arguments)):
        return
    path = str(arguments[0])
    # A file's lock is given up by the system when its process ends.
    if path.startswith(_plan.folder) and not path.endswith((".lock", ".held")):
        if _plan.left == 0:
            raise Killed(f"{event} {path}")
        _plan.left -= 1


def _writes(event: str, arguments: tuple[Any, ...]) -> bool:
    if event != "open":
        return False
    _, mode, flags = arguments
    return bool(int(flags or 0) & 0x3) or (isinstance(mode, str) and "r" not in mode)
