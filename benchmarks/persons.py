"""Measures many users of several threads each: look-ups, what they cost a turn, and the memory.

    python benchmarks/persons.py --users 10000 --threads 20 --lookups 1000000
    python benchmarks/persons.py --users 1000 --postgres URL

Users and scopes have names that are alike. Each thread has a fact that names its owner, so that
whatever crosses is seen. Targets: nothing crosses in any look-up; a turn of a user's thread takes
at most 5 ms more of CPU time than one of nobody's; memory does not grow with the look-ups.
"""

from __future__ import annotations

import argparse
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore
from resources import bytes_in, resident_mb

from topicloom import (
    RESPONDER,
    Fact,
    FactChanges,
    FileStorage,
    Person,
    ReflectionStore,
    Said,
    SessionInput,
    Settings,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom_lab.talk import Echo

SCOPES = ("", "work", "Work")
DAY = "2026-03-02T09:00:00+00:00"


def name_user(number: int) -> str:
    """A name that differs from others in its case and in signs that file systems use."""
    return ("ann{}", "Ann{}", "ann.{}", "ann/{}", "ann%{}")[number % 5].format(number // 5)


def name_owner(number: int, thread: int) -> Person:
    return Person(name_user(number), SCOPES[thread % len(SCOPES)])


@contextmanager
def open_store(folder: Path, postgres: str) -> Iterator[BaseStore]:
    if postgres:
        with PostgresStore.from_conn_string(postgres) as database:
            database.setup()
            yield database
        return
    opened = sqlite3.connect(folder / "store.sqlite", check_same_thread=False, isolation_level=None)
    opened.execute("PRAGMA synchronous=OFF")
    store = SqliteStore(opened)
    store.setup()
    yield store
    opened.close()


def measure_bytes(folder: Path, postgres: str) -> int:
    """Bytes that a store takes: its files, or its database."""
    if postgres:
        with psycopg.connect(postgres) as database:
            row = database.execute("SELECT pg_database_size(current_database())").fetchone()
            return int(row[0]) if row else 0
    return bytes_in(folder)


def fill(kept: ReflectionStore, users: int, threads: int) -> None:
    """A fact in every thread."""
    for number in range(users):
        for thread in range(threads):
            owner, name = name_owner(number, thread), f"{name_user(number)} {thread}"
            text = f"This is of {owner.user!r} in {owner.scope!r}, thread {thread}."
            kept.set_person(name, owner)
            fact = Fact(text, ("m1",), DAY, said=(Said(DAY, "m1"),))
            kept.change_facts(name, FactChanges((fact,)))


def look_up(kept: ReflectionStore, users: int, threads: int, count: int) -> tuple[int, int, float]:
    """Draw look-ups; returns how many facts were seen, how many crossed, and ms of a look-up."""
    drawn, seen, crossed = random.Random(0), 0, 0
    began = time.process_time()
    for _ in range(count):
        number, scope = drawn.randrange(users), drawn.choice(SCOPES)
        user = name_user(number)
        found = kept.shared_facts(Person(user, scope))
        owned = {f"This is of {user!r} in {s!r}," for s in ("", scope)}
        seen += len(found)
        crossed += sum(f.fact.text.partition(",")[0] + "," not in owned for f in found)
        wanted = sum(SCOPES[thread % len(SCOPES)] in ("", scope) for thread in range(threads))
        crossed += abs(len(found) - wanted)
    return seen, crossed, (time.process_time() - began) / count * 1e3


def measure_turns(folder: Path, store: BaseStore, users: int, turns: int) -> tuple[float, float]:
    """Median ms of CPU time of a turn of nobody's thread, and of one of a user's, taken in turn."""
    echo = Echo()
    roles = embedded_roles(default_embedder()).replace(RESPONDER, echo)
    storage = FileStorage(folder / "sessions", fsync=False)
    settings = Settings(folder=folder / "sessions", window=16_000)
    builder = build_session_graph(settings=settings, roles=roles, storage=storage, clock=echo.now)
    graph: Any = builder.compile(checkpointer=InMemorySaver(), store=store)
    times: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(turns + 3):
        for owned in (False, True):
            person = {"user_id": name_user((turn // 10) % users)} if owned else {}
            config: Any = {"configurable": {"thread_id": f"{owned} {turn // 10}", **person}}
            # Other words each time: an encoder remembers what it was given.
            asked = f"What shall I {('bake', 'cook')[owned]} on day {turn}?"
            said: SessionInput = {"messages": [("user", asked)]}
            began = time.process_time()
            graph.invoke(said, config, durability="exit")
            times[owned].append((time.process_time() - began) * 1e3)
    return statistics.median(times[False][3:]), statistics.median(times[True][3:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Many users of several threads each.")
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=20)
    parser.add_argument("--lookups", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--postgres", default="", metavar="URL")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder), asked.postgres) as store:
        kept = ReflectionStore(store)
        held = measure_bytes(Path(folder), asked.postgres)
        began = time.perf_counter()
        fill(kept, asked.users, asked.threads)
        where = "PostgreSQL" if asked.postgres else "SQLite"
        print(f"{where}: {asked.users:,} users of {asked.threads} threads, written in", end=" ")
        print(f"{time.perf_counter() - began:.0f} s and", end=" ")
        print(f"{(measure_bytes(Path(folder), asked.postgres) - held) / 1e6:.0f} MB")
        look_up(kept, asked.users, asked.threads, asked.lookups // 10)
        before = resident_mb()
        began = time.perf_counter()
        seen, crossed, ms = look_up(kept, asked.users, asked.threads, asked.lookups)
        print(f"{asked.lookups:,} look-ups, {seen:,} facts seen: {crossed} crossed (target 0)")
        print(f"{time.perf_counter() - began:.0f} s,", end=" ")
        print(f"{ms:.2f} ms of CPU time a look-up")
        print(f"memory: {before:.0f} MB before, {resident_mb():.0f} MB behind (target: no growth),")
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6:.0f} MB at most")
        alone, owned = measure_turns(Path(folder), store, asked.users, asked.turns)
        print(f"a turn: {alone:.1f} ms of nobody, {owned:.1f} ms of a user, ", end="")
        print(f"{owned - alone:+.1f} ms (target 5)")


if __name__ == "__main__":
    main()
