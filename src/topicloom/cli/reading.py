"""The commands that look into a session: topics, transcript, receipts; and the list of sessions."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from topicloom.cli._views import format_message_day, print_messages, render_receipt, render_topics
from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import CliContext, open_context
from topicloom.errors import InputError
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.sessions import SessionStore


def show_sessions(given: CliOptions) -> None:
    """List the sessions of the folder."""
    place, console = open_context(given), open_console()
    names = place.storage.sessions()
    if not names:
        print_dim(console, f"no sessions in {place.folder} yet; begin one with: topicloom chat")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("session", "messages", "topics", "last message"):
        table.add_column(heading, justify="right" if heading in ("messages", "topics") else "left")
    for name in names:
        table.add_row(to_one_line(name), *_describe_session(place, name))
    console.print(table)


def show_topics(given: CliOptions, name: str) -> None:
    """Print the topics of a session over time."""
    console = open_console()
    session, store = open_context(given).read(name)
    console.print(render_topics(session, store, console.width))


def show_transcript(
    given: CliOptions, name: str, topic: str | None, last: int | None, *, as_json: bool
) -> None:
    """Print messages of a session, for people or as JSON lines."""
    session, store = open_context(given).read(name)
    records = _read_messages(session, store, topic)[-last if last else 0 :]
    if as_json:
        for record in records:
            row = {"id": record.id} | record.model_dump(mode="json", exclude_defaults=True)
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
    else:
        print_messages(open_console(), records)


def show_receipts(given: CliOptions, name: str, count: int | None, *, as_json: bool) -> None:
    """Print the newest receipts of a session, the newest last, for people or as JSON lines.

    Args:
        given: What was given before the command.
        name: Of the session.
        count: How many; if None, one for people, and all of them as JSON lines.
        as_json: Whether programs read it.
    """
    session, store = open_context(given).read(name)
    if as_json:
        for receipt in store.receipts(session, newest=count):
            sys.stdout.write(receipt.model_dump_json() + "\n")
    else:
        console, topic_table = open_console(), store.topic_table(session)
        for receipt in store.receipts(session, newest=count or 1):
            console.print(render_receipt(receipt, topic_table))


def _describe_session(place: CliContext, name: str) -> tuple[str | Text, str | Text, str | Text]:
    session = place.session(name)
    if session is None:
        nothing = Text("-", style="dim")
        return nothing, nothing, Text("its checkpoints are not here", style="dim")
    store = SessionStore(place.storage.open(name))
    last = format_message_day(store.record(session, session.count)) if session.count else ""
    return f"{session.count:,}", f"{session.topics:,}", last


def _read_messages(
    session: Session, store: SessionStore, topic: str | None
) -> Sequence[StoredMessage]:
    """All messages, or those of a topic.

    Raises:
        InputError: There is no such topic.
    """
    if topic is None:
        return store.records(session)
    topic_table = store.topic_table(session)
    if topic not in topic_table:
        known = f"t1 to t{session.topics}" if session.topics else "none yet"
        raise InputError(f"session {session.id!r} has no topic {topic!r} (there: {known})")
    return store.topic_records(topic_table[topic])
