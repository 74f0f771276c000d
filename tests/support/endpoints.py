"""An endpoint over a session graph on loopback, and a client that sends all it knows each time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from openai import OpenAI
from openai.types.chat import ChatCompletion
from starlette.types import ASGIApp

from topicloom.graph.stored import Graph, get_session
from topicloom.storage.files import FileStorage
from topicloom.storage.sessions import SessionStore

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
