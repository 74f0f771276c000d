"""Bytes and time of a long session: how the checkpoint grows, and whether turns get slower.

Runs the same turns (a user message of 100 characters, a reply of 300) three ways: topicloom in
an 8k and in a 128k window, and the plain LangGraph pattern with every message in the state. All
write to SQLite with the library's defaults, unless `--durability exit` is given.

    python benchmarks/checkpoints.py --turns 1000

Targets for 1,000 turns: topicloom under 120 MB with library defaults, under 30 MB with `exit`; the
128k window at most 1.2 times the 8k one; the mean of the last 50 turns at most 1.2 times that of
turns 151 to 200. Until the first split a turn is a plain chat, without readers, so that ratio says
something only where the split came before turn 150. For wider windows the ratio to take is that to
50 turns of the same kind, from the 51st after the first split; it needs more turns: 2,000 for 128k.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from rich.console import Console
from rich.progress import track
from rich.table import Table
from talk import Echo, said

from topicloom import Settings, build_session_graph
from topicloom.perception.defaults import default_embedder
from topicloom.roles.embedded import embedded_roles


def topicloom(folder: Path, window: int) -> tuple[StateGraph[Any, Any, Any, Any], Echo]:
    """The session graph with embedded roles and a fixed reply."""
    echo = Echo()
    roles = replace(embedded_roles(default_embedder()), responder=echo)
    settings = Settings(window=window, folder=folder)
    return build_session_graph(settings=settings, roles=roles, clock=echo.now), echo


def plain() -> tuple[StateGraph[Any, Any, Any, Any], Echo]:
    """Every message in the state."""
    echo = Echo()

    def reply(_: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", said(echo.turn, 300))]}

    graph = StateGraph(MessagesState)
    graph.add_node("reply", reply)
    graph.add_edge(START, "reply")
    return graph, echo


def measure(name: str, turns: int, durability: Any, folder: Path) -> dict[str, str]:
    """Run one way: its figures, as text by name."""
    default_embedder.cache_clear()  # all ways embed the same texts; none may find them there
    graph, echo = {
        "plain": plain,
        "topicloom 8k": lambda: topicloom(folder, 8_000),
        "topicloom 128k": lambda: topicloom(folder, 128_000),
    }[name]()
    database = folder / "checkpoints.sqlite"
    times: list[float] = []
    splits: list[int] = []
    with SqliteSaver.from_conn_string(str(database)) as saver:
        app = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "bench"}}
        for turn in track(range(turns), name, transient=True):
            echo.turn = turn
            began = time.perf_counter()
            message = {"messages": [("user", said(turn, 100))]}
            events = app.stream(message, config, stream_mode="custom", durability=durability)
            kinds = [event["type"] for event in events]
            times.append(1_000 * (time.perf_counter() - began))
            splits += [turn] if "split" in kinds else []
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    early, late = times[150:200] or times, times[-50:]
    split = splits[0] if splits else len(times)
    alike = times[split + 50 : split + 100]
    stored = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and f != database)
    return {
        "checkpoints, MB": f"{database.stat().st_size / 1e6:.1f}",
        "storage, MB": f"{stored / 1e6:.1f}",
        "turns 151-200, ms": f"{statistics.mean(early):.1f}",
        "last 50 turns, ms": f"{statistics.mean(late):.1f}",
        "ratio": f"{statistics.mean(late) / statistics.mean(early):.2f}",
        "first split in turn": str(split + 1) if splits else "-",
        "turns 51-100 after it, ms": f"{statistics.mean(alike):.1f}" if alike else "-",
        "ratio to them": f"{statistics.mean(late) / statistics.mean(alike):.2f}" if alike else "-",
    }


def main() -> None:
    """Run all three and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--durability", choices=["sync", "async", "exit"], default="async")
    parser.add_argument("--only", action="append", help="plain, topicloom 8k or topicloom 128k")
    arguments = parser.parse_args()
    names = arguments.only or ["topicloom 8k", "topicloom 128k", "plain"]
    table = Table(title=f"{arguments.turns} turns, durability={arguments.durability}")
    table.add_column()
    rows = []
    for name in names:
        table.add_column(name, justify="right")
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(name, arguments.turns, arguments.durability, Path(folder)))
    for figure in rows[0]:
        table.add_row(figure, *(row[figure] for row in rows))
    Console().print(table)


if __name__ == "__main__":
    main()
