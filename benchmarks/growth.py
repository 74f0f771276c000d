"""Bytes, time and memory of a long session, side by side: does any of it grow with the history?

The same turns (a user message of 100 characters, a reply of 300) on topicloom in an 8k and in a
128k window, on the plain LangGraph pattern with every message in the state, and on LangChain's
SummarizationMiddleware and LangMem's SummarizationNode in an 8k window, as far as they are
installed. Each runs in a process of its own, without model calls, and writes to SQLite with the
library's defaults, unless `--durability exit` is given. What writes more than `--most` is stopped.

    python benchmarks/growth.py --at 100 1000 5000

Targets: topicloom under 120 MB for 1,000 turns with library defaults, under 30 MB with `exit`;
the 128k window at most 1.2 times the 8k one; turns as fast at the last mark as at the one before.
Times are means of the 50 turns before a mark. Until the first split a turn is a plain chat,
without readers: compare marks after it. `CPU` is of the whole process, whatever else runs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from resources import bytes_in, resident_mb
from rich.console import Console
from rich.table import Table
from ways import WAYS, missing

from topicloom_lab.talk import Echo, said

AVERAGED = 50
"""Turns before a mark that times are averaged over."""


@dataclass(frozen=True)
class Mark:
    """The measurements after so many turns."""

    checkpoints_mb: float
    """Size of the checkpointer's database."""
    storage_mb: float
    """Size of all other files."""
    wall_ms: float
    """A turn."""
    cpu_ms: float
    """CPU of a turn."""
    resident_mb: float
    """Memory over that before the first turn."""


@dataclass(frozen=True)
class Growth:
    """The measurements of one way."""

    marks: dict[int, Mark]
    """By turns."""
    first_split: int | None
    """The turn in which messages first moved into topics."""
    stopped: int | None
    """The turn after which it had written too much."""


def measure(way: str, at: list[int], durability: Any, most_mb: float) -> Growth:
    """Run one way to the last mark, or until it has written too much."""
    echo = Echo()
    walls, cpus = list[float](), list[float]()
    marks = dict[int, Mark]()
    split: int | None = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = folder / "checkpoints.sqlite"
        with SqliteSaver.from_conn_string(str(database)) as saver:
            app = WAYS[way](folder / "sessions", echo)(saver)
            before = resident_mb()
            for turn in range(max(at)):
                echo.turn = turn
                wall, cpu = time.perf_counter(), time.process_time()
                kinds = one_turn(app, turn, durability)
                walls.append(1_000 * (time.perf_counter() - wall))
                cpus.append(1_000 * (time.process_time() - cpu))
                if split is None and "split" in kinds:
                    split = turn + 1
                if turn + 1 in at:
                    saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    stored = bytes_in(folder, but=database.name) / 1e6
                    marks[turn + 1] = Mark(
                        checkpoints_mb=bytes_in(folder) / 1e6 - stored,
                        storage_mb=stored,
                        wall_ms=statistics.mean(walls[-AVERAGED:]),
                        cpu_ms=statistics.mean(cpus[-AVERAGED:]),
                        resident_mb=resident_mb() - before,
                    )
                if bytes_in(folder) / 1e6 > most_mb:
                    return Growth(marks, split, turn + 1)
    return Growth(marks, split, None)


def one_turn(app: Any, turn: int, durability: Any) -> list[str]:
    """Say something; returns the kinds of events that it led to."""
    config = {"configurable": {"thread_id": "bench"}}
    message = {"messages": [("user", said(turn, 100))]}
    events = app.stream(message, config, stream_mode="custom", durability=durability)
    return [event["type"] for event in events]


def apart(way: str, given: argparse.Namespace) -> Growth:
    """Measure in a fresh process: memory, and the encoder's cache, are its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, way, given.at, given.durability, given.most).result()


def table_of(found: dict[str, Growth], given: argparse.Namespace) -> Table:
    """A column a way, a row a figure and mark."""
    table = Table(title=f"Growth, durability={given.durability}", title_justify="left")
    for column in ("", "turns", *found):
        table.add_column(column, justify="right" if column else "left")
    figures: dict[str, Callable[[Mark], str]] = {
        "checkpoints, MB": lambda m: f"{m.checkpoints_mb:,.1f}",
        "storage, MB": lambda m: f"{m.storage_mb:,.1f}",
        "a turn, ms": lambda m: f"{m.wall_ms:.1f}",
        "CPU of a turn, ms": lambda m: f"{m.cpu_ms:.1f}",
        "memory, MB": lambda m: f"{m.resident_mb:,.0f}",
    }
    for name, text in figures.items():
        for turns in given.at:
            marks = [growth.marks.get(turns) for growth in found.values()]
            table.add_row(name, f"{turns:,}", *(text(m) if m else "-" for m in marks))
        table.add_section()
    for name, ratio in (("bytes", _bytes), ("CPU", lambda m: m.cpu_ms)):
        for one, other in zip(given.at, given.at[1:], strict=False):
            cells = [_ratio(g.marks.get(other), g.marks.get(one), ratio) for g in found.values()]
            table.add_row(f"{name}, {other:,} turns over {one:,}", "", *cells)
    table.add_section()
    splits = [str(growth.first_split or "-") for growth in found.values()]
    table.add_row("first split in turn", "", *splits)
    table.add_row("stopped after turn", "", *(str(g.stopped or "-") for g in found.values()))
    return table


def _bytes(mark: Mark) -> float:
    return mark.checkpoints_mb + mark.storage_mb


def _ratio(over: Mark | None, under: Mark | None, of: Any) -> str:
    return f"{of(over) / of(under):.2f}" if over and under else "-"


def main() -> None:
    """Run all ways and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--at", type=int, nargs="+", default=[100, 1_000], help="turns to look at")
    parser.add_argument("--durability", choices=["sync", "async", "exit"], default="async")
    parser.add_argument("--most", type=float, default=2_000.0, help="MB that a way may write")
    parser.add_argument("--only", action="append", choices=list(WAYS), help="this way")
    given = parser.parse_args()
    given.at.sort()
    # Into a file the table goes at the width that it needs.
    console = Console(width=None if sys.stdout.isatty() else 140)
    found = dict[str, Growth]()
    for way in given.only or WAYS:
        lacks = missing(way)
        if lacks:
            console.print(f"{way}: left out, {lacks} is not installed")
            continue
        with console.status(way):
            found[way] = apart(way, given)
    console.print(table_of(found, given))


if __name__ == "__main__":
    main()
