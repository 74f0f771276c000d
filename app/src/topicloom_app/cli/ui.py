"""`topicloom ui`: the inspector of a session, or of a copy of the packaged sample."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import webbrowser
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from starlette.types import ASGIApp

from topicloom.hosting import Graph, find_storage, run_background
from topicloom_app.cli._pages import write_page
from topicloom_app.cli.console import CliOptions, open_console, print_dim
from topicloom_app.cli.context import find_reply_model, open_context
from topicloom_app.cli.listening import check_host, listen, name_address, run_server
from topicloom_app.cli.sample import open_sample
from topicloom_app.recordings.replay import find_sample
from topicloom_app.serve.web import LOCAL
from topicloom_app.ui.app import make_inspector

_KEY = "TOPICLOOM_UI_KEY"


def run_ui(
    cli: CliOptions, name: str | None, host: str, port: int, *, edit: bool, browser: bool
) -> None:
    """Serve the page until a signal ends it.

    Raises `ConfigurationError` if the address cannot be used, or others could reach it without a
    key of the user's, and `InputError` if there is no such session.
    """
    context, console, key = open_context(cli), open_console(), os.environ.get(_KEY, "")
    check_host(host, [key] if key else [], _KEY)
    if name is not None:
        context.check_session(name)
    listener = listen(host, port)
    opened = context.open_graph() if name else open_sample(context, find_sample())
    with opened as (graph, saver, store):
        first = name or find_sample().stem
        key = key or secrets.token_urlsafe(16)
        app = make_inspector(
            graph,
            find_storage(graph).sessions,
            first,
            key=key,
            hosts=LOCAL if host in LOCAL else (),
            model=find_reply_model(context.settings) or "",
            write_page=write_page,
            editing=edit or name is None,  # the sample is a copy
        )
        address = f"{name_address(host, listener)}/?key={key}"
        console.print(address, markup=False, soft_wrap=True, highlight=False)
        print_dim(console, "session {session}; Ctrl-C ends it", session=first)
        if browser:
            webbrowser.open(address)
        asyncio.run(_serve_page(app, listener, graph, saver, store if name else None))


async def _serve_page(
    app: ASGIApp,
    listener: socket.socket,
    graph: Graph,
    saver: BaseCheckpointSaver[Any],
    store: BaseStore | None,
) -> None:
    """Serve the page; with a store, what is due is done between turns."""
    if store is None:
        await run_server(app, listener)
        return
    async with run_background(graph, checkpointer=saver, store=store):
        await run_server(app, listener)
