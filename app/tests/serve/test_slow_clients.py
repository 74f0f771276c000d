"""A client that takes its time for ever is told so, or cut off; nobody else waits for it."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from endpoints import listening
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from topicloom_app.serve.slow_clients import TimedProtocol, read_in_time
from topicloom_app.serve.web import read_json

PIECE = b"x" * 65_536
LONG = 30.0
"""Seconds in which even a busy machine has closed a connection."""


class Impatient(TimedProtocol):
    head_seconds, read_seconds = 0.5, 0.5


class Server:
    """An application that reads bodies, and one that writes without end."""

    def __init__(self) -> None:
        self.written, self.ended = 0, 0
        routes = [
            Route("/v1/read", self.read, methods=["POST"]),
            Route("/v1/write", self.write),
            Route("/v1/wait", self.wait),
        ]
        self.app = Starlette(routes=routes)

    async def read(self, request: Request) -> Response:
        return JSONResponse(len(await read_json(request, 10**9, seconds=0.5)))

    async def write(self, request: Request) -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield PIECE
                    self.written += 1
                    await asyncio.sleep(0)
            finally:
                self.ended += 1

        return StreamingResponse(pieces())

    async def wait(self, request: Request) -> Response:
        await asyncio.sleep(2)
        return JSONResponse("waited")


@pytest.fixture
def server() -> Server:
    return Server()


@contextmanager
def connected(server: Server) -> Iterator[tuple[socket.socket, str]]:
    with listening(server.app, Impatient) as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.settimeout(LONG)
            client.connect(("127.0.0.1", port))
            yield client, url


def read_all(client: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    got = b""
    try:
        while part := client.recv(65_536):
            got += part
    except ConnectionResetError:
        pass
    return got


def read_until(client: socket.socket, end: bytes) -> bytes:
    """What comes until it ends so; a reply may come in several pieces."""
    got = b""
    while not got.endswith(end):
        part = client.recv(65_536)
        assert part, got
        got += part
    return got


def trickle(client: socket.socket, text: bytes) -> bytes:
    """Send a byte at a time, until the server closes the connection; what it said."""
    client.settimeout(0.05)
    began, got = time.monotonic(), b""
    for byte in text:
        assert time.monotonic() - began < LONG
        try:
            client.send(bytes([byte]))
            part = client.recv(65_536)
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            return got
        if not part:
            return got
        got += part
    raise AssertionError("everything could be sent")


HEAD = b"POST /v1/read HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("said", [b"", b"POST /v1/read HT", HEAD])
def test_a_head_that_never_ends(server: Server, said: bytes) -> None:
    with connected(server) as (client, _):
        client.sendall(said)
        assert read_all(client) == b""


def test_a_head_that_comes_a_byte_at_a_time(server: Server) -> None:
    with connected(server) as (client, _):
        assert trickle(client, HEAD + b"X-More: " + b"x" * 10_000) == b""


def test_a_second_head_that_comes_a_byte_at_a_time(server: Server) -> None:
    with connected(server) as (client, _):
        client.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
        assert read_until(client, b"\r\n\r\n2").startswith(b"HTTP/1.1 200")
        assert trickle(client, HEAD + b"X-More: " + b"x" * 10_000) == b""


BODIES = [
    b"Content-Length: 100\r\n\r\n{",
    b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    b"Content-Length: 100\r\n\r\n",
]


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_never_ends(server: Server, body: bytes) -> None:
    with connected(server) as (client, _):
        client.sendall(HEAD + body)
        assert read_all(client).startswith(b"HTTP/1.1 408")


def test_a_body_that_comes_a_byte_at_a_time(server: Server) -> None:
    with connected(server) as (client, _):
        client.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        assert trickle(client, b" " * 10_000).startswith(b"HTTP/1.1 408")


async def test_a_large_body_has_as_long_as_it_needs() -> None:
    async def parts(pause: float) -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b"x" * 20_000
            await asyncio.sleep(pause)

    assert [len(p) async for p in read_in_time(parts(0.1), 0.2)] == [20_000] * 6
    with pytest.raises(HTTPException, match="to come"):
        assert [p async for p in read_in_time(parts(60), 0.2)]


def test_one_that_reads_nothing(server: Server) -> None:
    with connected(server) as (client, url):
        client.sendall(b"GET /v1/write HTTP/1.1\r\nHost: a\r\n\r\n")
        asked = urllib.request.Request(
            f"{url}/read", json.dumps({}).encode(), {"Content-Type": "application/json"}
        )
        began = time.monotonic()
        while not server.ended:
            with urllib.request.urlopen(asked) as answer:  # nobody else waits
                assert answer.status == 200
            assert time.monotonic() - began < LONG
            time.sleep(0.05)
        assert server.written * len(PIECE) < 50_000_000


def test_an_answer_may_take_as_long_as_it_takes(server: Server) -> None:
    with connected(server) as (client, _):
        client.sendall(b"GET /v1/wait HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert read_all(client).endswith(b'"waited"')
