"""A storage that fails at one of its appends, as if the process ended there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topicloom import FileStorage, Storage


class Crash(Exception):
    """Stands for the end of a process."""


class FailingLog:
    """A log whose n-th append fails, before or after it is written."""

    def __init__(self, storage: FailingStorage, log: Any) -> None:
        self._storage, self._log = storage, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, chain: str, head: str | None, bodies: Sequence[Any]) -> str | None:
        storage = self._storage
        storage.appends += 1
        due = storage.appends == storage.fail_at
        if due and not storage.afterwards:
            raise storage.error
        new: str | None = self._log.append(chain, head, bodies)
        if due:
            raise storage.error
        return new


@Storage.register
class FailingStorage:
    """A storage whose n-th append fails."""

    def __init__(
        self,
        folder: Path,
        fail_at: int = 0,
        *,
        afterwards: bool = False,
        error: Exception | None = None,
    ) -> None:
        self._storage = FileStorage(folder, fsync=False)
        self.appends = 0
        self.fail_at = fail_at
        self.afterwards = afterwards
        self.error = error or Crash()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def open(self, session: str) -> Any:
        return FailingLog(self, self._storage.open(session))


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Nobody in this process may write into a folder, not even as root."""
    root = os.geteuid() == 0
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if root:
        os.seteuid(65_534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
