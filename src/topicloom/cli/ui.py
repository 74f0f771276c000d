"""`topicloom ui`: the inspector, on the sessions of a folder or on the packaged sample."""

from __future__ import annotations

import asyncio
import os
import secrets
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from topicloom.cli._pages import write_page
from topicloom.cli.console import CliOptions, open_console, print_dim
from topicloom.cli.context import CliContext, describe_model, open_context, open_roles
from topicloom.cli.replay import feed_recording, open_small
from topicloom.cli.serve import check_host, listen, run_server
from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.nodes.runs import name_thread
from topicloom.recordings.replay import find_sample, load_first_conversation
from topicloom.roles.responder import RESPONDER, RecordedResponder
from topicloom.serve.app import LOCAL
from topicloom.storage.names import check_session_name
from topicloom.ui.app import make_inspector

_KEY = "TOPICLOOM_UI_KEY"


def run_ui(
    cli: CliOptions, name: str | None, host: str, port: int, *, edit: bool, browser: bool
) -> None:
    """Serve the page until a signal ends it.

    Raises `ConfigurationError` if the address cannot be used, or others could reach it without a
    key of the user's.
    """
    context, console, key = open_context(cli), open_console(), os.environ.get(_KEY, "")
    check_host(host, [key] if key else [], _KEY)
    if name is not None:
        check_session_name(name)
    listener = listen(host, port)
    with _open_folder(context) if name else _open_sample(context, console) as opened:
        context, graph = opened
        home = name or find_sample().stem
        key = key or secrets.token_urlsafe(16)
        app = make_inspector(
            graph,
            context.storage.sessions,
            home,
            key=key,
            hosts=LOCAL if host in LOCAL else (),
            model=describe_model(context.settings),
            write_page=write_page,
            editing=edit or name is None,  # the sample is a copy
        )
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/?key={key}"
        console.print(address, markup=False, soft_wrap=True, highlight=False)
        print_dim(console, f"session {home}; Ctrl-C ends it")
        if browser:
            webbrowser.open(address)
        asyncio.run(run_server(app, listener))


@contextmanager
def _open_folder(context: CliContext) -> Iterator[tuple[CliContext, CompiledSessionGraph]]:
    """The graph over the folder's sessions."""
    with context.open_graph() as (graph, *_):
        yield context, graph


@contextmanager
def _open_sample(
    context: CliContext, console: Console
) -> Iterator[tuple[CliContext, CompiledSessionGraph]]:
    """The graph over a copy of the packaged sample, with a window so small that it has topics."""
    conversation = load_first_conversation(find_sample(), None)
    with open_small(context) as small:
        roles = open_roles(small)
        recorded = RecordedResponder(otherwise=roles[RESPONDER])
        with small.open_graph(roles.replace(RESPONDER, recorded)) as (graph, *_):
            print_dim(console, "reading the packaged sample, about half a minute")
            thread = name_thread(find_sample().stem)
            feed_recording(console, graph, recorded, conversation, thread)
            yield small, graph
