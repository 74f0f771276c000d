"""Measures the cost of a turn without its roles, and of importing the package.

    python benchmarks/overhead.py

Targets: at most 30 ms at the median with 10 active topics, without the roles' own time, for a user
who reads the reply for .3 s before the next message; import at most 0.2 s over
`import langgraph.graph`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver

from topicloom import (
    RESPONDER,
    ActivationPolicy,
    SessionInput,
    Settings,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom_lab.talk import Echo, said

TURNS, MEASURED = 300, 60
READING = 0.3
"""Seconds that a reply is read before the next turn, of those that are measured."""


def overheads(folder: Path) -> tuple[list[float], list[float], int]:
    """Wall time and overhead of the last turns in ms, and how many topics were active."""
    echo = Echo()
    roles = embedded_roles(default_embedder()).replace(RESPONDER, echo)
    settings = Settings(
        window=8_000, folder=folder, activation=ActivationPolicy(floor=10, usual=10, ceiling=10)
    )
    graph = build_session_graph(settings=settings, roles=roles, clock=echo.now)
    config: RunnableConfig = {"configurable": {"thread_id": "overhead"}}
    walls, overs, active = [], [], 0
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        app = graph.compile(checkpointer=saver)
        for turn in range(TURNS):
            echo.turn = turn
            began, inside = time.perf_counter(), 0.0
            message: SessionInput = {"messages": [HumanMessage(said(turn, 100))]}
            for event in app.stream(message, config, stream_mode="custom", durability="exit"):
                if event["type"] == "receipt":
                    inside = sum(call["seconds"] for call in event["receipt"]["calls"])
                    active = len(event["receipt"]["active"])
            wall = time.perf_counter() - began
            if turn >= TURNS - MEASURED:
                walls.append(1_000 * wall)
                overs.append(1_000 * (wall - inside))
                time.sleep(READING)
    return walls, overs, active


def import_seconds(statement: str) -> float:
    """Median of five fresh interpreters."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    return statistics.median(runs)


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        walls, overs, active = overheads(Path(folder))
    print(
        f"turn with {active} active topics, median of {MEASURED}: {statistics.median(walls):.1f} ms"
    )
    print(f"of it beside the roles: {statistics.median(overs):.1f} ms (target 30)")
    alone = import_seconds("import langgraph.graph")
    both = import_seconds("import langgraph.graph, topicloom")
    used = import_seconds("import langgraph.graph; from topicloom import build_session_graph")
    print(f"import langgraph.graph {alone:.2f} s, with topicloom {both:.2f} s (target +0.20),")
    print(f"with build_session_graph {used:.2f} s")


if __name__ == "__main__":
    main()
