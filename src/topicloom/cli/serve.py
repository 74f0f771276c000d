"""`topicloom serve` and `topicloom ui`: sessions for any chat client, and the inspector."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import socket
import webbrowser
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import Any, Literal

import uvicorn
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.store.sqlite import SqliteStore
from rich.console import Console
from starlette.types import ASGIApp

from topicloom.cli._pages import write_page
from topicloom.cli.console import CliOptions, open_console, print_dim
from topicloom.cli.context import (
    CliContext,
    describe_model,
    find_reply_model,
    open_context,
    open_roles,
)
from topicloom.cli.replay import feed_recording, open_small
from topicloom.errors import ConfigurationError
from topicloom.graph.checkpoints import LocalCheckpointer
from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.graph.session import build_session_graph
from topicloom.memory.background import run_background
from topicloom.memory.stored import Graph, find_storage
from topicloom.nodes.runs import name_thread
from topicloom.recordings.replay import find_sample, load_first_conversation
from topicloom.roles.responder import RESPONDER, RecordedResponder
from topicloom.serve.app import check_origins, check_trusted, make_endpoint
from topicloom.serve.slow_clients import TimedProtocol
from topicloom.serve.web import LOCAL
from topicloom.storage.names import check_session_name
from topicloom.ui.app import make_inspector

Saver = BaseCheckpointSaver[Any]
_KEYS, _UI_KEY = "TOPICLOOM_SERVE_KEYS", "TOPICLOOM_UI_KEY"
_SECONDS = 30
"""How long turns that go on are waited for when the server is ended."""


def run_serve(
    cli: CliOptions,
    host: str,
    port: int,
    postgres: str | None,
    per_minute: int,
    megabytes: int,
    origins: Sequence[str] = (),
    trusted: Sequence[str] = (),
) -> None:
    """Serve until a signal ends it; what goes on is finished first.

    Raises `ConfigurationError` if a package is missing, or the address, the keys or the origins
    cannot be used.
    """
    context, keys = open_context(cli), read_keys(os.environ.get(_KEYS, ""))
    postgres = postgres or context.settings.postgres
    check_host(host, keys)
    check_origins(origins, keys)
    check_trusted(trusted, keys)
    listener = listen(host, port)
    model = find_reply_model(context.settings)
    names = ["topicloom", *([model.partition(":")[2] or model] if model else [])]
    console = open_console()
    where = f"{_name_address(host, listener)}/v1, models {', '.join(names)}"

    async def serve() -> None:
        async with (
            _open_graph(context, postgres) as (graph, saver, store),
            run_background(graph, checkpointer=saver, store=store),
        ):
            console.print(where, markup=False, soft_wrap=True)
            print_dim(console, describe_model(context.settings))
            app = make_endpoint(
                graph,
                keys=keys,
                models=names,
                trusted=trusted,
                origins=origins,
                max_bytes=megabytes * 1_000_000,
                per_minute=per_minute,
            )
            await run_server(app, listener)

    with listener:
        asyncio.run(serve())


def run_ui(
    cli: CliOptions, name: str | None, host: str, port: int, *, edit: bool, browser: bool
) -> None:
    """Serve the page until a signal ends it.

    Raises `ConfigurationError` if the address cannot be used, or others could reach it without a
    key of the user's.
    """
    context, console, key = open_context(cli), open_console(), os.environ.get(_UI_KEY, "")
    check_host(host, [key] if key else [], _UI_KEY)
    if name is not None:
        check_session_name(name)
    listener = listen(host, port)
    opened = context.open_graph() if name else _open_sample(context, console)
    with opened as (graph, saver, store):
        first = name or find_sample().stem
        key = key or secrets.token_urlsafe(16)
        app = make_inspector(
            graph,
            find_storage(graph).sessions,
            first,
            key=key,
            hosts=LOCAL if host in LOCAL else (),
            model=describe_model(context.settings),
            write_page=write_page,
            editing=edit or name is None,  # the sample is a copy
        )
        address = f"{_name_address(host, listener)}/?key={key}"
        console.print(address, markup=False, soft_wrap=True, highlight=False)
        print_dim(console, f"session {first}; Ctrl-C ends it")
        if browser:
            webbrowser.open(address)
        asyncio.run(_serve_page(app, listener, graph, saver, store if name else None))


async def _serve_page(
    app: ASGIApp, listener: socket.socket, graph: Graph, saver: Saver, store: BaseStore | None
) -> None:
    """Serve the page; with a store, what is due is done between turns."""
    if store is None:
        await run_server(app, listener)
        return
    async with run_background(graph, checkpointer=saver, store=store):
        await run_server(app, listener)


async def run_server(
    app: ASGIApp, listener: socket.socket, lifespan: Literal["on", "off"] = "off"
) -> None:
    """Serve until a signal ends it; what goes on is finished first."""
    # uvicorn sends itself the signal once more when it has ended: the databases are closed first.
    signal.signal(signal.SIGTERM, lambda *_: None)
    config = uvicorn.Config(
        app,
        http=TimedProtocol,
        log_level="warning",
        lifespan=lifespan,
        ws="none",
        timeout_graceful_shutdown=_SECONDS,
    )
    await uvicorn.Server(config).serve(sockets=[listener])


def read_keys(text: str) -> Mapping[str, str]:
    """Keys by whose they are: `ann=secret,bob=another`, or a single `secret` of nobody's.

    Raises `ConfigurationError` if that is not what the text has.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    named = [re.fullmatch(r"(\w+)=([^=].*)", part) for part in parts]
    keys = {found[1]: found[2] for found in named if found}
    if len(parts) == 1 and not keys:
        return {"": parts[0]}
    if len(keys) != len(parts):
        raise ConfigurationError(
            f"{_KEYS} cannot be used: give it a key, or name=key for each of several, by commas;"
            " names are of letters, digits and _"
        )
    return keys


def check_host(host: str, keys: Collection[str], variable: str = _KEYS) -> None:
    """Raise `ConfigurationError` if others could reach the server, and nothing keeps them out."""
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not (local or keys):
        raise ConfigurationError(
            f"other machines could reach {host}: set {variable}, or leave --host at 127.0.0.1"
        )


def _name_address(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there, or `ConfigurationError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise ConfigurationError(
            f"cannot listen at {host}, port {port}: {why}; --port takes another, 0 any that is free"
        ) from error
    # asyncio sets it on sockets of its own alone; without it a body waits 40 ms behind its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@asynccontextmanager
async def _open_graph(
    context: CliContext, postgres: str | None
) -> AsyncIterator[tuple[Graph, Saver, BaseStore]]:
    """The graph over the folder, or over a database of PostgreSQL with sessions and checkpoints.

    Its checkpoints and its store come with it.
    """
    if not postgres:
        with context.open_graph() as opened:
            yield opened
        return
    from topicloom.graph.postgres import open_postgres_saver, open_postgres_store

    builder = build_session_graph(settings=context.settings, storage="store")
    store = open_postgres_store(postgres)
    async with open_postgres_saver(postgres) as saver:
        yield builder.compile(checkpointer=saver, store=store), saver, store


@contextmanager
def _open_sample(
    context: CliContext, console: Console
) -> Iterator[tuple[CompiledSessionGraph, LocalCheckpointer, SqliteStore]]:
    """The graph over a copy of the packaged sample, with a window so small that it has topics."""
    conversation = load_first_conversation(find_sample(), None)
    with open_small(context) as small:
        roles = open_roles(small)
        recorded = RecordedResponder(otherwise=roles[RESPONDER])
        with small.open_graph(roles.replace(RESPONDER, recorded)) as opened:
            print_dim(console, "reading the packaged sample, about half a minute")
            thread = name_thread(find_sample().stem)
            feed_recording(console, opened[0], recorded, conversation, thread)
            yield opened
