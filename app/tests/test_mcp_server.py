"""The memory of a session for MCP clients, by the SDK's own client and both transports."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, assert_one_line, run
from mcp import Client, StdioServerParameters
from sessions import open_graph, past, record, tell, thread
from typer.main import get_group

from topicloom import FileStorage, Memory
from topicloom.graph.checkpoints import CHECKPOINTS, LocalCheckpointer
from topicloom_app import make_mcp_server
from topicloom_app.cli.app import app

__all__ = ["run"]
TOPICLOOM = Path(sys.executable).with_name("topicloom")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two sessions, of which one has a secret."""
    saver = LocalCheckpointer(tmp_path / CHECKPOINTS)
    graph = open_graph(tmp_path, checkpointer=saver)
    record(graph, thread("yue"), *past("茶", "雨", rounds=3))
    tell(graph, thread("yue"), "山：" + "很长" * 2_000, keep=0)
    record(graph, thread("other"), *past("秘密", rounds=3))
    saver.close()
    return tmp_path


@pytest.fixture
def memory(folder: Path) -> Memory:
    return Memory(FileStorage(folder, fsync=False), "yue")


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    """The address of `topicloom mcp yue --http`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(TOPICLOOM), "--folder", str(folder), "mcp", "yue", "--http", "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            with socket.socket() as found:
                if not found.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        _, said = server.communicate(timeout=60)
        assert f"http://127.0.0.1:{port}/mcp" in said


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool gives, or the text of its error."""
    found: Any = await client.call_tool(tool, arguments)
    if found.is_error:
        return found.content[0].text
    given = found.structured_content
    return given.get("result", given)


async def look_around(client: Client) -> None:
    """What every transport has to give."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == {"list_topics", "search", "quote", "read_topic"}
    for tool in tools.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert "session" not in str(tool.input_schema), "that is the server's to say"
    tea, rain = await call(client, "list_topics")
    assert (tea["id"], tea["name"], tea["messages"]) == ("t1", "茶", 6)
    found = await call(client, "search", text="雨", limit=3)
    assert {hit["topic"] for hit in found} == {"t2"}
    said = await call(client, "quote", message="m1")
    assert said["text"] == past("茶", rounds=3)[0].content
    page = await call(client, "read_topic", topic=rain["id"], limit=4)
    assert ([m["id"] for m in page["messages"]], page["next"]) == (["m7", "m8", "m9", "m10"], "m10")
    rest = await call(client, "read_topic", topic=rain["id"], after="m10")
    assert ([m["id"] for m in rest["messages"]], rest["next"]) == (["m11", "m12"], None)


@pytest.mark.slow
async def test_the_mcp_server_answers_over_stdio(folder: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOPICLOOM_")}
    server = StdioServerParameters(
        command=str(TOPICLOOM), args=["--folder", str(folder), "mcp", "yue"], env=environment
    )
    async with Client(server) as client:
        await look_around(client)


@pytest.mark.slow
def test_half_a_character_over_stdio_is_answered(folder: Path) -> None:
    """JavaScript cuts texts between the halves of an emoji; whole ones and backslashes stay."""
    command = [str(TOPICLOOM), "--folder", str(folder), "mcp", "yue"]
    about = {"capabilities": {}, "clientInfo": {"name": "js", "version": "1"}}
    begin = {"protocolVersion": "2025-06-18", **about}
    asked = {"name": "quote", "arguments": {"message": "\ud83d \ud83d\ude00 \\ud83d"}}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, params) in enumerate([("initialize", begin), ("tools/call", asked)]):
            call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            print(json.dumps(call), file=server.stdin, flush=True)
            answer = json.loads(server.stdout.readline())
            assert answer["id"] == number
        assert "\ufffd 😀 \\\\ud83d" in answer["result"]["content"][0]["text"]
        server.stdin.close()


@pytest.mark.slow
async def test_the_mcp_server_answers_over_http(url: str) -> None:
    async with Client(url) as client:
        await look_around(client)


@pytest.mark.slow
async def test_what_is_asked_wrongly_is_said(memory: Memory) -> None:
    async with Client(make_mcp_server(memory)) as client:
        assert "no topic 't9' (there: t1 to t2)" in await call(client, "read_topic", topic="t9")
        assert "no message 'm99'" in await call(client, "quote", message="m99")
        assert "is not a day" in await call(client, "search", text="雨", since="soon")
        assert "limit" in await call(client, "search", text="雨", limit=10_000)


@pytest.mark.slow
async def test_what_cannot_be_read_is_said_with_the_file(folder: Path, memory: Memory) -> None:
    for file in ("roster.jsonl", "transcript.jsonl"):
        (folder / "yue" / file).write_bytes(b"\xff" * 400)
    async with Client(make_mcp_server(memory)) as client:
        for tool, arguments in (
            ("list_topics", {}),
            ("search", {"text": "雨"}),
            ("quote", {"message": "m1"}),
            ("read_topic", {"topic": "t1"}),
        ):
            assert ".jsonl" in await call(client, tool, **arguments)


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(run: Run, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = run("mcp", "yue", "--http", "--port", port, folder=folder)
    assert_one_line(outcome, f"port {port}", "--port takes another")


def test_servers_begin_at_ports_of_their_own() -> None:
    commands = get_group(app).commands.values()
    ports = [option.default for c in commands for option in c.params if option.name == "port"]
    assert (len(ports), len(set(ports))) == (3, 3)


@pytest.mark.slow
async def test_long_messages_are_cut_in_lists_and_whole_in_quotes(memory: Memory) -> None:
    async with Client(make_mcp_server(memory)) as client:
        hits = {h["id"]: h for h in await call(client, "search", text="山：很长很长", limit=50)}
        assert (hits["m13"]["cut"], len(hits["m13"]["text"])) == (True, 2_000)
        assert len((await call(client, "quote", message="m13"))["text"]) > 4_000


@pytest.mark.slow
async def test_nothing_of_another_session_is_reached(memory: Memory) -> None:
    async with Client(make_mcp_server(memory)) as client:
        found = await call(client, "search", text="秘密", limit=50)
        assert not any("秘密" in hit["text"] for hit in found)
