"""`langgraph dev` serves the graph, and langgraph_sdk holds a conversation over it, on loopback."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph_api", reason="the server is NOT TESTED: langgraph-cli[inmem]")

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from servers import free_port, running

from topicloom import FileStorage, Session, SessionStore, make_encryption_key

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).parents[2] / "langgraph.json"
GUARD = '''
"""Notes down whoever wants to leave this machine, and does not let them."""
import os, sys

LOCAL = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "", None)


def guard(event, args):
    address = args[1] if event == "socket.connect" else args
    if event in ("socket.connect", "socket.getaddrinfo") and isinstance(address, tuple):
        if address[0] not in LOCAL:
            note(f"{event} {address}")
            raise OSError("this test stays on this machine")


def note(line):
    with open(os.environ["GUARD_LOG"], "a") as log:
        print(line, file=log)


sys.addaudithook(guard)
note("armed")
'''


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    folder: Path
    """Where sessions live."""
    log: Path
    guard: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The repository's own `langgraph.json`, served from an empty folder."""
    with serving(tmp_path_factory.mktemp("server")) as served:
        yield served


@contextmanager
def serving(home: Path, **settings: str) -> Iterator[Server]:
    guard = home / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD)
    port = free_port()
    served = Server(f"http://127.0.0.1:{port}", home / "sessions", home / "log", home / "visits")
    environment = {
        "PYTHONPATH": str(guard),
        "GUARD_LOG": str(served.guard),
        "TOPICLOOM_FOLDER": str(served.folder),
        "TOPICLOOM_WINDOW": "2000",
        "TOPICLOOM_FSYNC": "false",
        "TOPICLOOM_REFLECTION__TURNS": "1",
        "TOPICLOOM_REFLECTION__TICK_SECONDS": "0.5",
        **settings,
    }
    command = [str(program()), "dev", "--no-browser", "--no-reload", "--port", str(port)]
    command += ["--config", str(CONFIG)]
    with running(command, f"{served.url}/ok", served.log, environment):
        yield served


def program() -> Path:
    """The `langgraph` command of this environment."""
    beside = Path(sys.executable).with_name("langgraph")
    found = beside if beside.exists() else shutil.which("langgraph")
    if found is None:
        pytest.skip("the command langgraph is not installed")
    return Path(found)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    """A client of the server."""
    async with get_client(url=server.url, api_key=None) as opened:
        yield opened


async def begin(client: LangGraphClient) -> str:
    """A new thread."""
    thread: str = (await client.threads.create())["thread_id"]
    return thread


async def say(
    client: LangGraphClient, thread: str, text: str, **context: Any
) -> tuple[str, list[Any]]:
    """Say something; returns the streamed reply and the custom events."""
    said: Any = {"messages": [{"role": "user", "content": text}]}
    reply, events = "", []
    stream: AsyncIterator[Any] = client.runs.stream(
        thread,
        "topicloom",
        input=said,
        context=context or None,
        stream_mode=["messages-tuple", "custom"],
    )
    async for part in stream:
        assert part.event != "error", part.data
        if part.event == "messages":
            reply += part.data[0]["content"]
        elif part.event == "custom":
            events.append(part.data)
    return reply, events


async def test_a_conversation_runs_on_a_langgraph_server(
    server: Server, client: LangGraphClient
) -> None:
    thread = await begin(client)
    await say(client, thread, "My cat is called Tom and he likes fish.")
    reply, events = await say(client, thread, "What is my cat called?", keep_messages=0)
    assert "Tom" in reply
    assert [e["type"] for e in events] == ["split", "receipt"]
    assert events[-1]["receipt"]["turn"] == 2

    state: Any = (await client.threads.get_state(thread))["values"]
    assert [m["type"] for m in state["messages"]] == ["human", "ai", "human", "ai"]
    assert state["messages"][-1]["content"] == reply
    session = Session.model_validate(state["session"])
    assert session.id == thread
    store = SessionStore(FileStorage(server.folder).open(thread))
    assert [r.text for r in store.messages(session)] == [m["content"] for m in state["messages"]]
    assert len(store.topic_table(session)) == 1


async def test_two_threads_stay_apart(client: LangGraphClient) -> None:
    ann, ben = await begin(client), await begin(client)
    await say(client, ann, "My password is swordfish.")
    reply, _ = await say(client, ben, "What is my password?", keep_messages=0)
    assert "swordfish" not in reply


async def test_deleting_a_thread_deletes_its_session(
    server: Server, client: LangGraphClient
) -> None:
    thread, other = await begin(client), await begin(client)
    for one in (thread, other):
        for text in (f"The code of {one} is XSECRETX{one}.", "And the cat is Tom.", "Now what?"):
            await say(client, one, text, keep_messages=0)
    await client.threads.delete(thread)
    left = b"".join(p.read_bytes() for p in server.folder.rglob("*") if p.is_file())
    assert f"XSECRETX{thread}".encode() not in left
    assert f"XSECRETX{other}".encode() in left
    reply, _ = await say(client, other, "What is the code?", keep_messages=0)
    assert "XSECRETX" in reply


async def find_facts(client: LangGraphClient, thread: str) -> list[str]:
    """What reflection found in a session, as the server's own store has it."""
    found = await client.store.search_items(("topicloom", thread, "facts"))
    return [item["value"]["fact"] for item in found["items"]]


async def reflected(client: LangGraphClient, thread: str) -> list[str]:
    """The facts of a session, when its reflection is done."""
    for _ in range(600):
        if facts := await find_facts(client, thread):
            return facts
        await asyncio.sleep(0.1)
    pytest.fail("nobody reflected upon it")


async def test_a_reply_knows_what_reflection_found(client: LangGraphClient) -> None:
    thread = await begin(client)
    await say(client, thread, "I'm allergic to peanuts.")
    assert await reflected(client, thread) == ["I'm allergic to peanuts."]
    await say(client, thread, "What may I eat?", keep_messages=0)
    state: Any = (await client.threads.get_state(thread))["values"]
    assert len(state["session"]["facts"]) == 1


async def test_deleting_a_thread_deletes_its_facts(client: LangGraphClient) -> None:
    thread, other = await begin(client), await begin(client)
    for one in (thread, other):
        await say(client, one, "I live in Leeds.")
        assert await reflected(client, one) == ["I live in Leeds."]
    await client.threads.delete(thread)
    assert await find_facts(client, thread) == []
    assert await find_facts(client, other) == ["I live in Leeds."]


async def test_bad_input_is_an_error_of_that_run_alone(client: LangGraphClient) -> None:
    thread = await begin(client)
    empty: Any = {"messages": [{"role": "user", "content": "  "}]}
    result: Any = await client.runs.wait(thread, "topicloom", input=empty, raise_error=False)
    assert "empty" in str(result)
    reply, _ = await say(client, thread, "Hello")
    assert reply
    state: Any = (await client.threads.get_state(thread))["values"]
    assert state["session"]["count"] == 2


async def test_nothing_blocks_the_loop_and_nothing_leaves_the_machine(
    server: Server, client: LangGraphClient
) -> None:
    thread = await begin(client)
    for number in range(3):
        await say(client, thread, f"You forgot number {number}", keep_messages=0)
    log = server.log.read_text()
    assert "Blocking" not in log
    assert server.guard.read_text().split() == ["armed"]


@pytest.mark.long
async def test_with_a_key_no_file_of_ours_has_what_was_said(tmp_path: Path) -> None:
    key = make_encryption_key()
    with serving(tmp_path, TOPICLOOM_ENCRYPTION_KEY=key) as served:
        async with get_client(url=served.url, api_key=None) as client:
            thread, other = await begin(client), await begin(client)
            for one in (thread, other):
                await say(client, one, "I'm allergic to peanuts.")
                await say(client, one, "The tea is green.", keep_messages=0)
                reply, _ = await say(client, one, "What am I allergic to?", keep_messages=0)
                assert "peanuts" in reply
            assert await reflected(client, thread) == ["I'm allergic to peanuts."]
            await client.threads.delete(thread)
            state: Any = (await client.threads.get_state(other))["values"]
            assert state["session"]["count"] == 6
        read = {p: p.read_bytes() for p in served.folder.rglob("*") if p.is_file()}
        assert len(read) > 5
        assert not [p for p, text in read.items() if b"allergic" in text or thread in str(p)]
        assert "Traceback" not in served.log.read_text()


def test_the_graph_brings_no_checkpointer() -> None:
    from topicloom.app import graph

    assert graph.checkpointer is None
    assert graph.store is None
