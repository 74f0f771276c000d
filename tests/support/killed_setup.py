"""Opens the store of a new folder, killed at its nth SQL statement: `killed_setup.py FOLDER`.

Everything is imported once; each opening is a fork. After every kill two more open the store at
once, as after a restart. Prints a JSON line with the kills, and
those after which it stayed unusable.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topicloom.cli.context import make_context
from topicloom.settings import Settings


def fork(work: Callable[[], None]) -> int:
    """Do work in a child process; returns its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:  # noqa: BLE001 - a child must not go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(child: int) -> int:
    """Wait for a child; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def open_store(folder: Path, kill_at: int = 0) -> None:
    """Write to the store and read, in a process that dies before its nth statement."""
    statements = 0

    def count(statement: str) -> None:
        nonlocal statements
        statements += 1
        if statements == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def connect(*arguments: Any, **options: Any) -> Any:
        database = real(*arguments, **options)
        database.set_trace_callback(count)
        return database

    real: Any = sqlite3.connect
    sqlite3.connect = connect
    with make_context(folder, Settings()).open_store() as store:
        store.put(("a",), "b", {"c": 1})
        assert [item.value for item in store.search(("a",))] == [{"c": 1}]


def main(root: Path) -> None:
    unusable: list[int] = []
    kills = 0
    while True:
        folder = root / str(kills)
        if ended(fork(lambda: open_store(folder, kills + 1))) != -signal.SIGKILL:  # noqa: B023
            break
        kills += 1
        children = [fork(lambda: open_store(folder)) for _ in "ab"]  # noqa: B023
        if sum(ended(child) != 0 for child in children):
            unusable.append(kills)
    print(json.dumps({"kills": kills, "unusable": unusable}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
