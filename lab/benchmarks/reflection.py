"""Measures the cost of a tick of the reflection scheduler over many sessions.

    python lab/benchmarks/reflection.py --sessions 1000

Every session is a real one: a checkpoint in SQLite, a transcript in files, its progress in a
memory store. Target: a tick over 1,000 sessions takes under 1 s of CPU of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore

from topicloom import (
    RESPONDER,
    FileStorage,
    ReflectionPolicy,
    ReflectionScheduler,
    Settings,
    TurnOptions,
    build_session_graph,
    embedded_roles,
    reflect_beside,
)
from topicloom.lab import HashingEmbedder
from topicloom_lab.talk import Echo, said

ROUNDS = 3
"""User rounds of each session: fewer than trigger by their count."""


class Bench:
    """Sessions in a folder, and schedulers over them as processes that begin have them."""

    def __init__(self, folder: Path, saver: SqliteSaver) -> None:
        self.folder = folder
        self.saver = saver
        self.echo = Echo()
        self.store = InMemoryStore()
        self.roles = embedded_roles(HashingEmbedder(256)).replace(RESPONDER, self.echo)
        settings = Settings(folder=folder, fsync=False)
        graph = build_session_graph(settings=settings, roles=self.roles, clock=self.echo.now)
        self.graph: Any = graph.compile(checkpointer=saver)

    def fill(self, sessions: int) -> None:
        """Say something in every session, in one turn that only records."""
        messages = [("user", said(n, 60)) for n in range(ROUNDS)]
        for number in range(sessions):
            config = {"configurable": {"thread_id": f"session-{number}"}}
            context = TurnOptions(answer=False)
            self.graph.invoke({"messages": messages}, config, context=context, durability="exit")

    def scheduler(self, idle_seconds: float) -> ReflectionScheduler:
        """One that knows nothing yet."""
        return reflect_beside(
            checkpointer=self.saver,
            storage=FileStorage(self.folder, fsync=False),
            store=self.store,
            roles=self.roles,
            policy=ReflectionPolicy(idle_seconds=idle_seconds, tick_seconds=1e6, messages=1_000),
            clock=lambda: self.echo.now() + timedelta(hours=1),
        )


async def ticks(bench: Bench, idle_seconds: float) -> tuple[float, float, int, float]:
    """CPU seconds of a first and a second tick, how many were due, and of all reflections."""
    scheduler = bench.scheduler(idle_seconds)
    began = time.process_time()
    due = await scheduler.tick()  # it has not been started, so nothing begins
    first = time.process_time() - began
    began = time.process_time()
    await scheduler.tick()
    second = time.process_time() - began
    began = time.process_time()
    if due:
        async with scheduler:
            while not bench.store.search(("topicloom",)):
                await asyncio.sleep(0.01)
            await scheduler.wait_idle()
    return first, second, due, time.process_time() - began


async def measure(bench: Bench, sessions: int) -> None:
    """Print the figures."""
    for name, idle in (("nothing due, all with rounds pending", 1e9), ("all due", 600.0)):
        first, second, due, whole = await ticks(bench, idle)
        print(f"{sessions} sessions, {name} ({due} due), CPU of a tick:")
        print(f"  the first after a start {first:.2f} s, the next {second:.2f} s (target 1.00)")
        if due:
            print(f"  a tick with all {due} reflections, embedded: {whole:.2f} s")
    first, second, due, _ = await ticks(bench, 600.0)
    print(f"{sessions} sessions, nothing pending ({due} due), CPU of a tick:")
    print(f"  the first after a start {first:.2f} s, the next {second:.2f} s (target 1.00)")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    sessions = parser.parse_args().sessions
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with SqliteSaver.from_conn_string(str(path / "checkpoints.sqlite")) as saver:
            bench = Bench(path / "sessions", saver)
            bench.fill(sessions)
            asyncio.run(measure(bench, sessions))


if __name__ == "__main__":
    main()
