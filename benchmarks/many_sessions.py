"""Thousands of sessions in one process: descriptors and memory, by how many were opened.

    .venv/bin/python benchmarks/many_sessions.py --sessions 3000

Each session has a few short turns with fake roles. What should be seen: both stay level once as
many sessions are open as `open_sessions` keeps.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from topicloom import FileStorage, Settings, build_session_graph, local_checkpointer
from topicloom.testing import Clock, fake_roles


def count_descriptors() -> int:
    """Open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def measure_memory() -> float:
    """Resident memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Open the sessions, and print a line for each tenth of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=3_000)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        graph = build_session_graph(
            settings=Settings(folder=folder, fsync=False, embedder="hashing"),
            roles=fake_roles(),
            storage=FileStorage(folder, fsync=False),
            clock=Clock(),
        ).compile(checkpointer=local_checkpointer(folder / "checkpoints.sqlite"))
        print("sessions  descriptors  memory MB  seconds", flush=True)
        began = time.monotonic()
        for number in range(options.sessions + 1):
            if number % max(1, options.sessions // 10) == 0:
                seconds = time.monotonic() - began
                row = f"{count_descriptors():11}  {measure_memory():9.0f}  {seconds:7.0f}"
                print(f"{number:8}  {row}", flush=True)
            config: RunnableConfig = {"configurable": {"thread_id": f"user-{number}"}}
            for turn in range(options.turns):
                said = f"tea: message {turn} of {number} " + "word " * 60
                graph.invoke({"messages": [HumanMessage(said)]}, config)


if __name__ == "__main__":
    main()
