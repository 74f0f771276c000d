"""`topicloom sessions`, `topics`, `transcript` and `receipt`: commands that only read."""

from __future__ import annotations

import json
import sys

from rich.table import Table
from rich.text import Text

from topicloom.cli._views import format_day, print_messages, render_receipt, render_topics
from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import open_context
from topicloom.errors import InputError, StorageError
from topicloom.storage.message_rows import to_row
from topicloom.storage.sessions import SessionStore


def show_sessions(cli: CliOptions) -> None:
    """List the sessions of the folder."""
    context, console = open_context(cli), open_console()
    names = context.storage.sessions()
    if not names:
        print_dim(console, f"no sessions in {context.folder} yet; begin one with: topicloom chat")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("session", "messages", "topics", "last message"):
        table.add_column(heading, justify="right" if heading in ("messages", "topics") else "left")
    for name in names:
        wrong = "its checkpoints are not here"
        try:
            session = context.find_session(name)
            store = SessionStore(context.storage.open(name))
            last = store.message(session, session.count).day if session and session.count else ""
        except StorageError:
            session, wrong = None, f"cannot be read: topicloom check {name}"
        if session is None:
            none = Text("-", style="dim")
            table.add_row(to_one_line(name), none, none, Text(to_one_line(wrong), style="dim"))
            continue
        shown = format_day(last) if last else ""
        table.add_row(to_one_line(name), f"{session.count:,}", f"{session.topics:,}", shown)
    console.print(table)


def show_topics(cli: CliOptions, name: str) -> None:
    """Print the topics of a session over time."""
    console = open_console()
    session, store = open_context(cli).read_session(name)
    console.print(render_topics(session, store, console.width))


def show_transcript(
    cli: CliOptions, name: str, topic: str | None, last: int | None, *, as_json: bool
) -> None:
    """Print messages of a session, or raise InputError if it has no such topic."""
    session, store = open_context(cli).read_session(name)
    if topic is None:
        messages = store.messages(session)
    else:
        topic_table = store.topic_table(session)
        if topic not in topic_table:
            known = f"t1 to t{session.topics}" if session.topics else "none yet"
            raise InputError(f"session {session.id!r} has no topic {topic!r} (there: {known})")
        messages = store.topic_messages(topic_table[topic])
    messages = messages[-last if last else 0 :]
    if as_json:
        for message in messages:
            sys.stdout.write(json.dumps(to_row(message), ensure_ascii=False) + "\n")
    else:
        print_messages(open_console(), messages)


def show_receipts(cli: CliOptions, name: str, count: int | None, *, as_json: bool) -> None:
    """Print receipts, the newest last: by default one for people, or all as JSON lines."""
    session, store = open_context(cli).read_session(name)
    if as_json:
        for receipt in store.receipts(session, newest=count):
            sys.stdout.write(receipt.model_dump_json() + "\n")
    else:
        console, topic_table = open_console(), store.topic_table(session)
        for receipt in store.receipts(session, newest=count or 1):
            console.print(render_receipt(receipt, topic_table))
