"""An endpoint over a session graph on loopback, and a client that sends all it knows each time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from langgraph.checkpoint.memory import InMemorySaver
from openai import OpenAI
from openai.types.chat import ChatCompletion
from openai_server import OpenAIServer
from sessions import open_graph
from starlette.types import ASGIApp

from topicloom import FileStorage, SessionStore, Settings, build_session_graph, get_session
from topicloom.hosting import Graph
from topicloom.testing import ScriptedResponder, fake_roles
from topicloom_app import make_endpoint

Message = dict[str, Any]


@contextmanager
def listening(app: ASGIApp) -> Iterator[str]:
    """Serve an application on a free port of 127.0.0.1; gives the base URL for clients."""
    config = uvicorn.Config(app, port=0, log_level="warning", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def serve_command(folder: Path, server: OpenAIServer, *options: str) -> Iterator[tuple[str, Any]]:
    """The base URL of a server of its own process, and the process."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("TOPICLOOM_", "OPENAI_"))},
        "TOPICLOOM_MODEL": "openai:some",
        "TOPICLOOM_BASE_URL": server.base_url,
        "TOPICLOOM_SERVE_KEYS": "secret",
        "PYTHONUNBUFFERED": "1",
    }
    program = Path(sys.executable).with_name("topicloom")
    command = [str(program), "--folder", str(folder), "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, *options], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        found = re.match(r"(http\S+), models topicloom, some", process.stdout.readline())
        assert found
        yield found[1], process
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(60)
    assert process.returncode == 0


def open_client(url: str, key: str = "none") -> OpenAI:
    """A client that asks once."""
    return OpenAI(base_url=url, api_key=key, max_retries=0)


def ask(client: OpenAI, history: list[Message], text: str, **options: Any) -> list[Message]:
    """The conversation with a message more, and the answer to it."""
    asked: list[Any] = [*history, {"role": "user", "content": text}]
    reply: ChatCompletion = client.chat.completions.create(
        model="topicloom", messages=asked, **options
    )
    return [*asked, {"role": "assistant", "content": reply.choices[0].message.content}]


def remembered(folder: Path, graph: Graph, session: str) -> list[Message]:
    """The conversation that the newest checkpoint of a session stands for."""
    found = get_session(graph, {"configurable": {"thread_id": session}})
    messages = SessionStore(FileStorage(folder, fsync=False).open(session)).messages(found)
    return [{"role": m.role, "content": m.text} for m in messages]


@dataclass
class Talk:
    """A client, and what stands behind the endpoint that it talks to."""

    folder: Path
    graph: Graph
    responder: ScriptedResponder
    client: OpenAI
    waited: list[timedelta]
    """How long after a reply the next request comes: a single one, which may be changed."""
    url: str

    def ask(self, history: list[Message], text: str, **options: Any) -> list[Message]:
        return ask(self.client, history, text, **options)

    def remembered(self, session: str = "c1") -> list[Message]:
        return remembered(self.folder, self.graph, session)

    @property
    def session(self) -> str:
        (only,) = FileStorage(self.folder).sessions()
        return only


@contextmanager
def talking(folder: Path, **options: Any) -> Iterator[Talk]:
    """A client of an endpoint over a graph with a tool, with the options of the endpoint.

    Replies are counted: 回答1。, 回答2。.
    """
    numbers = count(1)
    responder = ScriptedResponder(otherwise=lambda _: f"回答{next(numbers)}。")

    def weather(city: str) -> str:
        """The weather."""
        return "rain"

    graph = open_graph(
        folder, fake_roles(responder), tools=[weather], window=4_000, reply_attempts=1
    )
    waited = [timedelta(minutes=1)]
    given = {"per_minute": 100_000, "now": lambda: datetime.now(UTC) + waited[0], **options}
    with listening(make_endpoint(graph, **given)) as url, open_client(url) as client:
        yield Talk(folder, graph, responder, client, waited, url)


@contextmanager
def serving(
    folder: Path, server: OpenAIServer, attempts: int = 2, **options: Any
) -> Iterator[tuple[str, Graph]]:
    """The base URL of an endpoint over a graph whose model is at a scripted server."""
    settings = Settings(
        folder=folder,
        fsync=False,
        base_url=server.base_url,
        api_key="k",
        max_retries=0,
        reply_attempts=attempts,
    )
    built = build_session_graph(model="openai:some", settings=settings)
    graph = built.compile(checkpointer=InMemorySaver())
    with listening(make_endpoint(graph, **options)) as url:
        yield url, graph
