"""Measures many users of several threads each: look-ups, what they cost a turn, and the memory.

    python lab/benchmarks/persons.py --users 10000 --threads 20 --lookups 1000000
    python lab/benchmarks/persons.py --users 1000 --postgres URL

Users and scopes have names that are alike. Each thread has a fact that names its owner; the threads
of the first users (`--talking`) also have a topic whose messages name theirs. So whatever crosses
is seen. A look-up is one of three, drawn: the facts that a thread sees, the cards of other threads'
topics, or messages of other threads (`TOPICLOOM_ACROSS_THREADS=all`), found by a question that fits
everybody's and read as a prompt shows them. Every second one is of a user whose name is like that
of the user before. Targets: nothing crosses in any look-up; a turn of a user's thread takes at most
5 ms more of CPU time than one of nobody's; memory does not grow with the look-ups.
"""

from __future__ import annotations

import argparse
import random
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import psycopg
from langchain_core.messages import HumanMessage
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
    ImportedChat,
    Person,
    ReflectionStore,
    Said,
    Session,
    SessionInput,
    SessionStore,
    Settings,
    TurnOptions,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom.lab import UserKnowledge, hash_words, read_profiles, sees
from topicloom_lab.talk import Echo

SCOPES = ("", "work", "Work")
ALIKE = 5
"""Users in a row whose names are alike."""
DAY = "2026-03-02T09:00:00+00:00"
KINDS, WEIGHTS = ("facts", "cards", "messages"), (78, 20, 2)
"""What is looked up, and how often in a hundred."""
ASKED = "Which part does the boiler in Ghent need?"


def name_user(number: int) -> str:
    """A name that differs from others in its case and in signs that file systems use."""
    names = ("ann{}", "Ann{}", "ann.{}", "ann/{}", "ann%{}")
    return names[number % ALIKE].format(number // ALIKE)


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


def name_thread(number: int, thread: int) -> str:
    return f"{name_user(number)} {thread}"


def tell_owner(owner: Person) -> str:
    """What a text says that is of an owner."""
    return f"This is of {owner.user!r} in {owner.scope!r},"


def name_code(number: int, thread: int) -> str:
    """A word that the messages of one thread alone have."""
    return f"qx{number}z{thread}"


def fill(kept: ReflectionStore, users: int, threads: int) -> None:
    """A fact in every thread."""
    for number in range(users):
        for thread in range(threads):
            owner, name = name_owner(number, thread), name_thread(number, thread)
            text = f"{tell_owner(owner)} thread {thread}."
            kept.set_person(name, owner)
            fact = Fact(text, ("m1",), DAY, said=(Said(DAY, "m1"),))
            kept.change_facts(name, FactChanges((fact,)))


def talk(folder: Path, store: BaseStore, users: int, threads: int) -> UserKnowledge:
    """A topic in every thread of some users; returns what reads other threads."""
    echo = Echo()
    roles = embedded_roles(default_embedder()).replace(RESPONDER, echo)
    settings = Settings(folder=folder / "talks", across_threads="all")
    storage = FileStorage(settings.folder, fsync=False)
    builder = build_session_graph(settings=settings, roles=roles, storage=storage, clock=echo.now)
    for number in range(users):
        # A checkpointer for each user: that of a thread is not needed any more.
        graph: Any = builder.compile(checkpointer=InMemorySaver(), store=store)
        for thread in range(threads):
            owner, name = name_owner(number, thread), name_thread(number, thread)
            code = name_code(number, thread)
            text = f"The boiler in Ghent needs part {code}. {tell_owner(owner)} thread {thread}."
            told = {"thread_id": name, "user_id": owner.user, "scope": owner.scope}
            options = TurnOptions(
                answer=False,
                keep_messages=0,
                chats=(ImportedChat(id=code, messages=(code,), title="Boiler"),),
            )
            said: SessionInput = {"messages": [HumanMessage(text, id=code)]}
            graph.invoke(said, {"configurable": told}, context=options, durability="exit")
    return builder.deps.user


@dataclass
class Tally:
    """What look-ups of one kind found."""

    lookups: int = 0
    seen: int = 0
    """Facts, cards or messages that were shown."""
    crossed: int = 0
    """Of these, what is another's or twice there, and what is missing."""
    seconds: float = 0.0
    """CPU time."""


@dataclass(frozen=True)
class Lookups:
    """Draws look-ups of a user's thread and counts what crossed."""

    store: BaseStore
    others: UserKnowledge
    sessions: FileStorage
    users: int
    threads: int
    talking: int
    """Users whose threads have messages: the first ones."""

    def run(self, count: int) -> dict[str, Tally]:
        drawn, last = random.Random(0), 0
        tallies = {kind: Tally() for kind in KINDS}
        look: dict[str, Callable[[int, int], tuple[int, int]]] = {
            "facts": self.find_facts,
            "cards": self.find_cards,
            "messages": self.find_messages,
        }
        for turn in range(count):
            (kind,) = drawn.choices(KINDS, WEIGHTS)
            # Some of the users that are drawn say nothing: they see nothing.
            among = self.users if kind == "facts" else min(self.users, self.talking + ALIKE)
            number = drawn.randrange(among)
            if turn % 2:
                alike = last - last % ALIKE + drawn.randrange(ALIKE)
                number = alike if alike < among else number
            thread, tally, last = drawn.randrange(self.threads), tallies[kind], number
            began = time.process_time()
            seen, crossed = look[kind](number, thread)
            tally.seconds += time.process_time() - began
            tally.lookups += 1
            tally.seen += seen
            tally.crossed += crossed
        return tallies

    def find_facts(self, number: int, thread: int) -> tuple[int, int]:
        """How many facts a thread sees, and how many of them crossed or are missing."""
        owner = name_owner(number, thread)
        found = ReflectionStore(self.store).shared_facts(owner)
        wanted = [
            f"{tell_owner(name_owner(number, n))} thread {n}." for n in self._visible(owner.scope)
        ]
        return len(found), count_crossed([f.fact.text for f in found], wanted)

    def find_cards(self, number: int, thread: int) -> tuple[int, int]:
        """The same of the cards of other threads, each known by a word of its thread."""
        owner, name = name_owner(number, thread), name_thread(number, thread)
        found = read_profiles(self.store, owner, but=name)
        others = [n for n in self._visible(owner.scope) if n != thread and number < self.talking]
        wanted = {
            name_thread(number, n): frozenset(hash_words([name_code(number, n)]).tolist())
            for n in others
        }
        crossed = count_crossed([card.session for card in found], list(wanted))
        for card in found:
            words = {w for topic in card.topics for w in topic.read_words().tolist()}
            own = card.user == owner.user and sees(owner.scope, card.scope)
            crossed += not (own and wanted.get(card.session, frozenset([-1])) <= words)
        return len(found), crossed

    def find_messages(self, number: int, thread: int) -> tuple[int, int]:
        """The same of what a prompt quotes of other threads; what does not fit may be missing."""
        owner, name = name_owner(number, thread), name_thread(number, thread)
        session = Session(id=name, user_id=owner.user, scope=owner.scope)
        found = self.others.find_messages(self.store, session, ASKED, None, ())
        own = SessionStore(self.sessions.open(name))
        shown = self.others.read(self.store, own, session, found)
        wanted = {name_thread(number, n): n for n in self._visible(owner.scope) if n != thread}
        crossed = 0
        for quote, text in shown.items():
            n = wanted.get(quote.thread)
            crossed += n is None or (
                f"part {name_code(number, n)}. {tell_owner(name_owner(number, n))}" not in text
            )
        nothing = bool(wanted) and number < self.talking and not shown
        return len(shown), crossed + nothing

    def _visible(self, scope: str) -> list[int]:
        """The threads of a user that one in a scope may see."""
        return [n for n in range(self.threads) if sees(scope, SCOPES[n % len(SCOPES)])]


def count_crossed(found: Sequence[str], wanted: Sequence[str]) -> int:
    """How many of the found are not wanted or there twice, and how many wanted are missing."""
    return len(found) - len({*found} & {*wanted}) + len({*wanted} - {*found})


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
    parser.add_argument("--talking", type=int, default=100, help="users who also have messages")
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
        talking = min(asked.talking, asked.users)
        began = time.perf_counter()
        others = talk(Path(folder), store, talking, asked.threads)
        print(f"{talking * asked.threads:,} threads with messages, written in", end=" ")
        print(f"{time.perf_counter() - began:.0f} s")
        sessions = FileStorage(Path(folder) / "talks", fsync=False)
        lookups = Lookups(store, others, sessions, asked.users, asked.threads, talking)
        lookups.run(asked.lookups // 10)
        before = resident_mb()
        began = time.perf_counter()
        for kind, tally in lookups.run(asked.lookups).items():
            print(f"{tally.lookups:,} look-ups, {tally.seen:,} {kind} seen:", end=" ")
            print(f"{tally.crossed} crossed or missing (target 0),", end=" ")
            print(f"{tally.seconds / max(1, tally.lookups) * 1e3:.2f} ms of CPU time a look-up")
        print(f"{time.perf_counter() - began:.0f} s")
        print(f"memory: {before:.0f} MB before, {resident_mb():.0f} MB behind (target: no growth),")
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6:.0f} MB at most")
        alone, owned = measure_turns(Path(folder), store, asked.users, asked.turns)
        print(f"a turn: {alone:.1f} ms of nobody, {owned:.1f} ms of a user, ", end="")
        print(f"{owned - alone:+.1f} ms (target 5)")


if __name__ == "__main__":
    main()
