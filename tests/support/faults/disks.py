"""A disk that fails under each write of an operation: full, read-only, short, slow, torn."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.campaign import Case, Outcome
from faults.checker import check, check_told
from faults.killing import count_steps, run_child
from faults.operations import Operation, operations
from faults.stages import FilesStage
from faults.talk import talk

OPERATIONS = ("split", "review", "purge", "rename", "import")
"""Those that are tried."""
PAGES = 40
"""Pages of 4 KB that are free at most on a small file system."""


class FaultyDisk:
    """What `os` does in a child process, but for the nth write of it."""

    def __init__(self, fault: str, at: int, size: int = 0) -> None:
        """A fault at the `at`th write, fsync or opening, from 1; a torn write has `size` bytes."""
        self.sizes: list[int] = []
        """Bytes of each write so far."""
        self._fault, self._at, self._size = fault, at, size
        self._calls: Counter[str] = Counter()
        self._write, self._fsync, self._open = os.write, os.fsync, os.open

    def install(self) -> None:
        """Take the place of the functions, until the process ends."""
        vars(os).update(write=self.write, fsync=self.fsync, open=self.open)

    def write(self, file: int, data: Any) -> int:
        """Write, or fail as told."""
        self.sizes.append(len(data))
        due, later = self._count("write")
        if self._fault == "full" and later:
            raise OSError(errno.ENOSPC, "No space left on device")
        if due and self._fault == "full-once":
            self._write(file, data[: len(data) // 3])
            raise OSError(errno.ENOSPC, "No space left on device")
        if due and self._fault == "short":
            return self._write(file, data[: max(1, len(data) // 3)])
        if due and self._fault == "slow":
            time.sleep(0.05)
        if due and self._fault == "torn":
            self._write(file, data[: self._size])
            os.kill(os.getpid(), signal.SIGKILL)
        return self._write(file, data)

    def fsync(self, file: int) -> None:
        """Wait for the disk, or fail as told."""
        if self._count("fsync")[0] and self._fault == "fsync":
            raise OSError(errno.EIO, "Input/output error")
        self._fsync(file)

    def open(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        """Open a file, or fail as told."""
        writing = flags & (os.O_WRONLY | os.O_RDWR)
        if writing and self._count("open")[1] and self._fault == "read-only":
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return self._open(path, flags, *more, **named)

    def _count(self, name: str) -> tuple[bool, bool]:
        """True if this call is the one that is meant; and true if that or one after it is."""
        self._calls[name] += 1
        return self._calls[name] == self._at, self._calls[name] >= self._at


@contextmanager
def disk_cases(only: frozenset[str], tmpfs: bool) -> Iterator[list[Case]]:
    """A case for every fault under every write; with `tmpfs`, on a small file system too."""
    with tempfile.TemporaryDirectory() as folder:
        base = FilesStage(Path(folder) / "base")
        errors = base.root.with_name("errors")
        count_steps(lambda: talk(base), base.root, errors)
        cases = [
            case
            for operation in operations("files")
            if operation.name in only
            for case in _cases(base, operation)
        ]
        if not tmpfs:
            yield cases
            return
        with small_disk(Path(folder) / "small") as small:
            yield [*cases, *_small_cases(base, small, only)]


def can_mount() -> bool:
    """True if this process may mount a file system in memory."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


@contextmanager
def small_disk(folder: Path, megabytes: int = 3) -> Iterator[Path]:
    """A small file system in memory."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _cases(base: FilesStage, operation: Operation) -> Iterator[Case]:
    sizes = _measure(base, operation)
    for fault in ("full", "full-once", "short", "slow", "fsync", "read-only"):
        for at in range(1, len(sizes) + 1):
            disk = FaultyDisk(fault, at)
            name = f"disk/{operation.name}/{fault}/{at}"
            yield Case(name, partial(_try, base.copy, base, operation, disk.install))
    for at, size in enumerate(sizes, 1):
        for torn in range(size):
            disk = FaultyDisk("torn", at, torn)
            name = f"disk/{operation.name}/torn/{at}-{torn}"
            yield Case(name, partial(_try, base.copy, base, operation, disk.install))


def _measure(base: FilesStage, operation: Operation) -> list[int]:
    """Bytes of each write of an operation."""
    stage, disk = base.copy("measured"), FaultyDisk("none", 0)
    told = base.root.with_name("sizes")

    def measured() -> None:
        disk.install()
        operation.act(stage, True)
        told.write_text(json.dumps(disk.sizes))

    count_steps(measured, stage.root, base.root.with_name("errors"))
    sizes: list[int] = json.loads(told.read_text())
    return sizes


def _small_cases(base: FilesStage, small: Path, only: frozenset[str]) -> Iterator[Case]:
    for operation in operations("files"):
        if operation.name in only:
            for pages in range(PAGES):
                name = f"disk/{operation.name}/tmpfs/{pages}"
                yield Case(name, partial(_fill, base, small, operation, pages))


def _fill(base: FilesStage, small: Path, operation: Operation, pages: int) -> Outcome:
    """Do it on a file system with so few pages left, then with more of them."""
    padding = small / "padding"

    def copy(name: str) -> FilesStage:
        stage = FilesStage(small / "base").copy(name)
        room = os.statvfs(small)
        left = room.f_bavail * room.f_frsize - 4096 * pages
        padding.write_bytes(b"\0" * left)
        return stage

    padding.unlink(missing_ok=True)
    subprocess.run(["cp", "-rT", str(base.root), str(small / "base")], check=True)
    return _try(copy, base, operation, lambda: None, lambda: padding.unlink(missing_ok=True))


def _try(
    copy: Callable[[str], FilesStage],
    base: FilesStage,
    operation: Operation,
    fail: Callable[[], None],
    mend: Callable[[], None] = lambda: None,
) -> Outcome:
    """Do it on a failing disk, look, do it again on one that works, look again."""
    stage, errors = copy("failing"), base.root.with_name("errors")

    def act() -> None:
        fail()
        operation.act(stage, True)

    end = run_child(act, errors)
    problems = [f"raised {errors.read_text()[-1_000:]}"] if end == 1 else []
    mend()
    found = check(stage.read())
    problems += [*found.problems, *check_told(found, operation.before, operation.after)]
    if run_child(partial(operation.act, stage, False), errors):
        problems.append(f"doing it again fails: {errors.read_text()[-1_000:]}")
    raw = stage.read()
    again = check(raw)
    problems += [*again.problems, *check_told(again, operation.after, operation.after)]
    problems += operation.wants(stage, raw)
    figures = Counter(injected=1, killed=int(end == -9), refused=int(end == 2))
    return Outcome(problems, figures)
