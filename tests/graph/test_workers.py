"""Two workers of a LangGraph server over one PostgreSQL; one is killed in the middle.

    AEGRA=.../bin/aegra SESSIONS=50 pytest tests/graph/test_workers.py

Without `AEGRA`, the workers are two of `langgraph dev`; `scripts/try_integrations.py` has 50
sessions on both.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from subprocess import Popen
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import LangGraphError
from postgres import open_postgres
from servers import free_port, running
from sessions import tell, thread

from topicloom import Memory, ReflectionStore, StoreStorage, build_session_graph, reflect_beside
from topicloom.hosting import open_postgres_store
from topicloom.testing import Clock, fake_roles

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).parents[2] / "langgraph.json"
AEGRA = os.environ.get("AEGRA")
SESSIONS, TURNS = int(os.environ.get("SESSIONS", "6")), 4
BIN = Path(sys.executable).parent


@pytest.fixture
def postgres() -> Iterator[str]:
    with open_postgres() as uri:
        yield uri


@pytest.fixture
def workers(tmp_path: Path, postgres: str) -> Iterator[list[tuple[str, Popen[bytes]]]]:
    """Two servers by their addresses."""
    given = {
        "TOPICLOOM_POSTGRES": postgres,
        "TOPICLOOM_WINDOW": "1000",
        "OTEL_SDK_DISABLED": "true",
    }
    with ExitStack() as stack:
        begun = []
        for name in ("one", "two"):
            folder, port = tmp_path / name, free_port()
            folder.mkdir()
            url, command = f"http://127.0.0.1:{port}", [*program(folder), "--port", str(port)]
            own = given | {"DATABASE_URL": postgres, "AEGRA_CONFIG": str(folder / "aegra.json")}
            alive = f"{url}/{'health' if AEGRA else 'ok'}"
            process = stack.enter_context(running(command, alive, folder / "log", own))
            begun.append((url, process))
        yield begun


def program(folder: Path) -> list[str]:
    """The command of a worker, but for its port."""
    if not AEGRA:
        return [
            str(BIN / "langgraph"),
            "dev",
            "--no-browser",
            "--no-reload",
            "--config",
            str(CONFIG),
        ]
    (folder / "graph.py").write_text("from topicloom.app import graph\n")
    served = {"graphs": {"topicloom": "./graph.py:graph"}, "dependencies": ["."]}
    (folder / "aegra.json").write_text(json.dumps(served))
    return [AEGRA, "serve", "--host", "127.0.0.1"]


def says(thread: str, turn: int) -> dict[str, str]:
    """What is said in a turn, with an id by which it is known if it is sent again."""
    text = f"In turn {turn}, {thread} counts {'sheep and goats ' * 50}up to {turn * 7}."
    return {"role": "user", "id": f"{thread}-{turn}", "content": text}


async def take_turn(clients: Sequence[LangGraphClient], thread: str, turn: int) -> None:
    """A turn at either worker; at the other one if that one is gone."""
    said: Any = {"messages": [says(thread, turn)]}
    for attempt in range(2 * TURNS):
        client = clients[(turn + attempt) % 2]
        try:
            await client.threads.create(thread_id=thread, if_exists="do_nothing")
            state: Any = await client.runs.wait(thread, "topicloom", input=said)
        except (httpx.TransportError, LangGraphError):
            await asyncio.sleep(0.2)
            continue
        if "messages" in state:
            return
    raise AssertionError(f"turn {turn} of {thread} got no answer")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Request failed, attempting reconnect")
async def test_a_worker_is_killed_and_nothing_is_lost(
    workers: list[tuple[str, Popen[bytes]]], postgres: str
) -> None:
    threads = [str(uuid4()) for _ in range(SESSIONS)]
    ended, enough = asyncio.Semaphore(0), SESSIONS * TURNS // 3
    at_once = asyncio.Semaphore(8)

    async def converse(clients: Sequence[LangGraphClient], thread: str) -> None:
        for turn in range(TURNS):
            async with at_once:
                await take_turn(clients, thread, turn)
            ended.release()

    async def kill() -> None:
        for _ in range(enough):
            await ended.acquire()
        workers[1][1].send_signal(signal.SIGKILL)

    async with (
        get_client(url=workers[0][0], api_key=None) as one,
        get_client(url=workers[1][0], api_key=None) as two,
    ):
        await asyncio.gather(kill(), *(converse([one, two], thread) for thread in threads))

    store = open_postgres_store(postgres)
    split = 0
    for name in threads:
        memory = Memory(StoreStorage(store), name)
        history = memory.history(limit=1_000)
        said = [m.text for m in history if m.role == "user"]
        assert said == [says(name, turn)["content"] for turn in range(TURNS)]
        assert [m.role for m in history] == ["user", "assistant"] * TURNS
        split += len(memory.topics())
    assert split


async def test_each_due_session_is_reflected_upon_and_reviewed_by_one(postgres: str) -> None:
    """Two schedulers as of two processes: nothing is shared but the database."""
    clock, read, reviewed = Clock(), list[str](), list[str]()
    names = [f"s{n}" for n in range(5)]

    async def review(session: str) -> None:
        reviewed.append(session)

    stores = [open_postgres_store(postgres) for _ in range(2)]
    with PostgresSaver.from_conn_string(postgres) as saver:
        builder = build_session_graph(storage="store", roles=fake_roles(), clock=clock)
        graph = builder.compile(checkpointer=saver, store=stores[0])
        for name in names:
            tell(graph, thread(name), f"I live in Leeds, in house {name}.")
        clock.now += timedelta(days=2)
        schedulers = [
            reflect_beside(
                checkpointer=saver,
                storage=StoreStorage(store),
                store=store,
                roles=fake_roles(),
                clock=clock,
                external=read.append,
                review=review,
            )
            for store in stores
        ]
        async with schedulers[0], schedulers[1]:
            while len(reviewed) < len(names):
                await asyncio.gather(*(scheduler.tick() for scheduler in schedulers))
                await asyncio.gather(*(scheduler.wait_idle() for scheduler in schedulers))
    assert sorted(read) == sorted(reviewed) == names
    for name in names:
        (fact,) = ReflectionStore(stores[1]).facts(name).values()
        assert name in fact.text
