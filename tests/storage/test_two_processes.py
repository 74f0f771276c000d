"""Two processes take turns of one session at once: every turn that was accepted is in view."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from sessions import check_kept

from topicloom import (
    FileStorage,
    Settings,
    Storage,
    StoreStorage,
    build_session_graph,
    open_session,
)
from topicloom.hosting import Graph
from topicloom.testing import fake_roles

pytestmark = pytest.mark.slow

CONFIG: Any = {"configurable": {"thread_id": "two"}}
TURNS = 8


def open_place(place: str, stack: ExitStack) -> tuple[Graph, Any]:
    """The graph of a process, over a folder or a database, and its storage."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.store.postgres import PostgresStore

    if place.startswith("postgresql"):
        saver: Any = stack.enter_context(PostgresSaver.from_conn_string(place))
        store = stack.enter_context(PostgresStore.from_conn_string(place))
        saver.setup()
        storage: Storage = StoreStorage(store)
        given: Any = "store"
    else:
        saver = stack.enter_context(SqliteSaver.from_conn_string(f"{place}/checkpoints.sqlite"))
        storage = given = FileStorage(Path(place), fsync=False)
        store = None
    builder = build_session_graph(
        settings=Settings(window=2_000),
        roles=fake_roles(),
        storage=given,
    )
    return builder.compile(checkpointer=saver, store=store), storage


def talk(place: str, who: str) -> None:
    with ExitStack() as stack:
        graph, _ = open_place(place, stack)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        input()
        for n in range(TURNS):
            graph.invoke({"messages": [HumanMessage(f"{who} {n} " + "gear wheel " * 20)]}, CONFIG)


@pytest.fixture(params=["files", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "files":
        return str(tmp_path)
    uri: str = request.getfixturevalue("postgres_uri")
    return uri


def test_all_that_was_said_is_in_view(place: str) -> None:
    with ExitStack() as stack:
        graph, _ = open_place(place, stack)
        graph.invoke({"messages": [HumanMessage("Hello")]}, CONFIG)
        paths = os.pathsep.join(sys.path)
        command = [sys.executable, "-W", "ignore", __file__, place]
        run = [
            subprocess.Popen(
                [*command, who],
                env={**os.environ, "PYTHONPATH": paths},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            for who in "AB"
        ]
        for process in run:
            assert process.stdout is not None
            process.stdout.readline()
        for process in run:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.close()
        assert [process.wait() for process in run] == [0, 0]
        for process in run:
            assert process.stdout is not None
            process.stdout.close()
        graph.invoke({"messages": [HumanMessage("And now?")]}, CONFIG)
        session, store = open_session(graph, CONFIG)
        said = [m.text for m in check_kept(store, session) if m.role == "user"]
        assert len(said) == len(set(said)) == 2 * TURNS + 2
        for who in "AB":
            own = [int(text.split()[1]) for text in said if text.startswith(f"{who} ")]
            assert own == list(range(TURNS))


if __name__ == "__main__":
    talk(sys.argv[1], sys.argv[2])
