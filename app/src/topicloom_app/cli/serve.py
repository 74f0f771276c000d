"""`topicloom serve`: sessions for any chat client."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from topicloom import ConfigurationError, build_session_graph
from topicloom.hosting import Graph, run_background
from topicloom_app.cli.console import CliOptions, open_console, print_dim
from topicloom_app.cli.context import (
    CliContext,
    describe_model,
    find_reply_model,
    open_context,
)
from topicloom_app.cli.listening import check_host, listen, name_address, run_server
from topicloom_app.serve.app import check_origins, check_trusted, make_endpoint

Saver = BaseCheckpointSaver[Any]
_HELLO = '{"model": "topicloom", "messages": [{"role": "user", "content": "Hello"}]}'
_KEYS, _ZONES = "TOPICLOOM_SERVE_KEYS", "TOPICLOOM_SERVE_TIMEZONES"


def run_serve(
    cli: CliOptions,
    host: str,
    port: int,
    postgres: str | None,
    per_minute: int,
    megabytes: int,
    origins: Sequence[str] = (),
    trusted: Sequence[str] = (),
    *,
    record: bool = False,
) -> None:
    """Serve until a signal ends it; what goes on is finished first.

    Raises `ConfigurationError` if a package is missing, or the address, the keys or the origins
    cannot be used.
    """
    context, keys = open_context(cli), read_keys(os.environ.get(_KEYS, ""))
    timezones = read_keys(os.environ.get(_ZONES, ""), _ZONES)
    postgres = postgres or context.settings.postgres
    check_host(host, keys, _KEYS)
    check_origins(origins, keys)
    check_trusted(trusted, keys)
    listener = listen(host, port)
    model = find_reply_model(context.settings)
    names = ["topicloom", *([model.partition(":")[2] or model] if model else [])]
    console = open_console()
    address = name_address(host, listener)

    async def serve() -> None:
        async with (
            _open_graph(context, postgres) as (graph, saver, store),
            run_background(graph, checkpointer=saver, store=store),
        ):
            console.print(f"{address}/v1, models {', '.join(names)}", markup=False, soft_wrap=True)
            print_dim(console, describe_model(context.settings))
            print_dim(console, "Ctrl-C ends the server. Try it from another terminal:")
            console.print(_write_example(address, keys), markup=False, soft_wrap=True)
            app = make_endpoint(
                graph,
                keys=keys,
                models=names,
                trusted=trusted,
                origins=origins,
                record=record,
                timezones=timezones,
                max_bytes=megabytes * 1_000_000,
                per_minute=per_minute,
            )
            await run_server(app, listener)

    with listener:
        asyncio.run(serve())


def _write_example(address: str, keys: Mapping[str, str]) -> str:
    """A command that says hello to the endpoint."""
    key = ' -H "Authorization: Bearer YOUR_KEY"' if keys else ""
    json = ' -H "Content-Type: application/json"'
    return f"curl {address}/v1/chat/completions{key}{json} -d '{_HELLO}'"


def read_keys(text: str, variable: str = _KEYS) -> Mapping[str, str]:
    """Keys by whose they are: `ann=secret,bob=another`, or a single `secret` of nobody's.

    The time zones of their users are written likewise.

    Raises `ConfigurationError` if that is not what the text has.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    named = [re.fullmatch(r"(\w+)=([^=].*)", part) for part in parts]
    keys = {found[1]: found[2] for found in named if found}
    if len(parts) == 1 and not keys:
        return {"": parts[0]}
    if len(keys) != len(parts):
        raise ConfigurationError(
            "{variable} cannot be used: give it a key, or name=key for each of several, by commas;"
            " names are of letters, digits and _",
            variable=variable,
        )
    return keys


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
    from topicloom.hosting import open_postgres_saver, open_postgres_store

    builder = build_session_graph(settings=context.settings, storage="store")
    store = open_postgres_store(postgres, context.keys)
    async with open_postgres_saver(postgres, context.keys) as saver:
        yield builder.compile(checkpointer=saver, store=store), saver, store
