"""Ends a process before the nth thing that it does to a disk or a database.

Python announces every open, rename and removal before it does them (audit events), a connection to
SQLite its statements; `os.write`, `os.fsync` and what psycopg sends are wrapped. All of this is
done in a child process, and ends with it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from topicloom import TopicLoomError

_CHANGES = {"os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir", "os.link"}
_WRITING = os.O_WRONLY | os.O_RDWR


class Fuse:
    """Counts what a process does, and kills the process, or a server, before the nth of it."""

    def __init__(
        self, folder: Path, at: int | None, kill: Callable[[], None] | None = None
    ) -> None:
        """Kill before the `at`th thing done, from 1; never for None."""
        self.count = 0
        self._kill = kill or _kill_this_process
        self._folder, self._at = str(folder), at
        self._lock = threading.Lock()

    def light(self) -> None:
        """Begin to count, until the process ends."""
        sys.addaudithook(self._audit)
        for name in ("write", "fsync"):
            setattr(os, name, self._before(getattr(os, name)))
        sqlite3.connect = self._traced(sqlite3.connect)
        if "psycopg" in sys.modules:
            connection = sys.modules["psycopg"].Connection
            connection.wait = self._before(connection.wait)

    def tick(self, *_: object) -> None:
        """One more thing is about to be done."""
        with self._lock:
            self.count += 1
            if self.count == self._at:
                self._kill()

    def _before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def ticking(*args: Any, **kwargs: Any) -> Any:
            self.tick()
            return function(*args, **kwargs)

        return ticking

    def _traced(self, connect: Callable[..., sqlite3.Connection]) -> Callable[..., Any]:
        def connected(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            database = connect(*args, **kwargs)
            database.set_trace_callback(self.tick)
            return database

        return connected

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if (event in _CHANGES or _opens(event, arguments)) and self._is_ours(arguments[0]):
            self.tick()

    def _is_ours(self, path: object) -> bool:
        # A file's lock is given up by the system when its process ends.
        name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else self._folder
        return name.startswith(self._folder) and not name.endswith((".lock", ".held"))


def _kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_child(work: Callable[[], object], errors: Path, fuse: Fuse | None = None) -> int:
    """Do something in a child process and wait for it.

    Returns:
        0 if it got through, -9 if it was killed; 2 if it raised an error of the package, 1 for any
        other, which `errors` tells.
    """
    return wait_for(start_child(work, errors, fuse))


def start_child(work: Callable[[], object], errors: Path, fuse: Fuse | None = None) -> int:
    """Do something in a child process; returns its id."""
    child = os.fork()
    if not child:
        _be_child(work, errors, fuse)
    return child


def wait_for(child: int) -> int:
    """How a child process ended; see `run_child`."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def count_steps(work: Callable[[], object], folder: Path, errors: Path) -> int:
    """The number of things that something does to disks and databases, done in a child process."""
    fuse, told = Fuse(folder, None), errors.with_suffix(".count")

    def counted() -> None:
        work()
        told.write_text(json.dumps({"steps": fuse.count, "modules": list(sys.modules)}))

    if run_child(counted, errors, fuse):
        raise RuntimeError(
            f"it does not get through even if nothing is killed: {errors.read_text()}"
        )
    counts = json.loads(told.read_text())
    for name in counts["modules"]:
        # What was imported on the way is there for the next child, which is a fork of this process.
        with suppress(ImportError):
            importlib.import_module(name)
    return int(counts["steps"])


def _be_child(work: Callable[[], object], errors: Path, fuse: Fuse | None) -> None:
    code = 1
    try:
        output = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if fuse is not None:
            fuse.light()
        work()
        code = 0
    except TopicLoomError:
        errors.write_text(traceback.format_exc())
        code = 2
    except BaseException:  # noqa: BLE001 - a child must not go on as its parent
        errors.write_text(traceback.format_exc())
    os._exit(code)


def _opens(event: str, arguments: tuple[Any, ...]) -> bool:
    if event != "open":
        return False
    _, mode, flags = arguments
    return bool(int(flags or 0) & _WRITING) or (isinstance(mode, str) and "r" not in mode)
