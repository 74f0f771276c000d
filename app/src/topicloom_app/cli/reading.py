"""`topicloom sessions`, `topics`, `transcript`, `search`, `quote` and `receipt`: they only read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from topicloom import InputError, StorageError, StoredMessage
from topicloom.hosting import FilledText, to_row
from topicloom_app.cli._views import (
    choose_receipts,
    format_day,
    print_found,
    print_messages,
    render_receipt,
    render_topics,
)
from topicloom_app.cli.console import CliOptions, open_console, print_dim, print_json, to_one_line
from topicloom_app.cli.context import CliContext, open_context
from topicloom_app.cli.words import say
from topicloom_app.mcp_server import make_mcp_server, run_on_stdio


def show_sessions(cli: CliOptions, *, as_json: bool) -> None:
    """List the sessions of the folder, for people or as JSON lines."""
    context, console = open_context(cli), open_console()
    rows = [_describe_session(context, name) for name in context.storage.sessions()]
    if as_json:
        print_json(rows)
        return
    if not rows:
        print_dim(
            console,
            "no sessions in {folder} yet; begin one with: topicloom chat",
            folder=context.folder,
        )
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("session", "messages", "topics", "last message"):
        table.add_column(
            say(heading), justify="right" if heading in ("messages", "topics") else "left"
        )
    for row in rows:
        known = [f"{row[key]:,}" if row[key] is not None else "-" for key in ("messages", "topics")]
        last = Text(to_one_line(say(row["wrong"])), style="dim") if row["wrong"] else row["last"]
        shown = format_day(last) if isinstance(last, str) and last else last
        table.add_row(to_one_line(row["name"]), *known, shown)
    console.print(table)


def _describe_session(context: CliContext, name: str) -> dict[str, Any]:
    """A session in figures, or what is wrong with it."""
    row: dict[str, Any] = {"name": name, "messages": None, "topics": None, "last": "", "wrong": ""}
    try:
        if not context.has_checkpoint(name):
            row["wrong"] = "its checkpoints are not here"
        memory = context.open_memory(name)
        session, newest = memory.session(), memory.history(limit=1)
        topics = len(memory.topics())
    except InputError:
        return row
    except StorageError:
        wrong = FilledText("cannot be read: topicloom check {name}", name=name)
        return row | {"wrong": wrong}
    last = newest[0].day if newest else ""
    return row | {"messages": session.count, "topics": topics, "last": last}


def show_topics(cli: CliOptions, name: str, *, as_json: bool) -> None:
    """Print the topics of a session over time, or as JSON lines."""
    context, console = open_context(cli), open_console()
    memory = context.open_memory(name)
    if as_json:
        print_json(topic.model_dump() for topic in memory.topics())
    else:
        splits_at = context.settings.split.trigger
        console.print(render_topics(memory, console.width, splits_at=splits_at))


def show_transcript(
    cli: CliOptions, name: str, topic: str | None, last: int | None, *, as_json: bool
) -> None:
    """Print messages of a session, or raise InputError if it has no such topic."""
    memory = open_context(cli).open_memory(name)
    said = memory.topic(topic).messages() if topic else memory.history(limit=last)
    _print(said[-last if last else 0 :], as_json=as_json)


def show_quote(cli: CliOptions, name: str, message: str, *, as_json: bool) -> None:
    """Print one message, or raise InputError if there is none."""
    _print([open_context(cli).open_memory(name).quote(message)], as_json=as_json)


def show_found(
    cli: CliOptions,
    name: str,
    text: str,
    since: str | None,
    until: str | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Print what fits a text best, best first, a line each."""
    found = open_context(cli).open_memory(name).search(text, since, until, limit)
    if as_json:
        extra = [
            {"topic": hit.topic or None, "relevance": hit.relevance, "fits": hit.fits}
            for hit in found
        ]
        print_json(to_row(hit.message) | more for hit, more in zip(found, extra, strict=True))
    else:
        print_found(open_console(), found)


def show_receipts(cli: CliOptions, name: str, count: int | None, *, as_json: bool) -> None:
    """Print receipts, the newest last: by default one for people, or all as JSON lines."""
    context = open_context(cli)
    memory = context.open_memory(name)
    if as_json:
        print_json(receipt.model_dump(mode="json") for receipt in memory.receipts(count))
    else:
        console, known = open_console(), {t.id: t for t in memory.topics()}
        for receipt in choose_receipts(memory.receipts, count or 1):
            console.print(render_receipt(receipt, known, context.settings.prices))


def serve_mcp(cli: CliOptions, name: str, port: int | None) -> None:
    """Serve a session's memory to MCP clients: on stdio, or at a port of this machine."""
    server = make_mcp_server(open_context(cli).open_memory(name))
    if port is None:
        run_on_stdio(server)
    else:
        from topicloom_app.cli.listening import listen, run_server

        listener = listen("127.0.0.1", port)
        typer.echo(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", err=True)
        asyncio.run(run_server(server.streamable_http_app(), listener, lifespan="on"))


def _print(messages: Sequence[StoredMessage], *, as_json: bool) -> None:
    if as_json:
        print_json(map(to_row, messages))
    else:
        print_messages(open_console(), messages)
