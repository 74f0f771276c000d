"""`topicloom purge` and `delete`: remove messages or sessions for good, after naming them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import typer
from langgraph.store.sqlite import SqliteStore
from rich.console import Console
from rich.text import Text

from topicloom.cli._excerpts import shorten
from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import CliContext, make_thread_config, open_context
from topicloom.cli.reflect import render_facts
from topicloom.errors import InputError
from topicloom.graph.deletion import delete_session
from topicloom.graph.purge import compact_file, purge_messages
from topicloom.graph.session import build_session_graph
from topicloom.graph.stored import Graph
from topicloom.reflection.store import ReflectionStore
from topicloom.roles.values import parse_message_ids
from topicloom.state.recall import parse_message_number
from topicloom.state.session import Session
from topicloom.storage.purging import PurgePlan
from topicloom.storage.sessions import SessionStore

_NAMED = 12
"""Messages that are shown before they are removed."""
_WIDEST = 1_000_000
"""Messages that a range may span."""


def run_purge(
    cli: CliOptions, name: str, topics: Sequence[str], messages: Sequence[str], *, sure: bool
) -> None:
    """Name what will be removed, ask unless `sure`, and remove it.

    All messages of `topics` go, and `messages`, which are short ids or ranges: `m12`, `m12-m15`.
    """
    context, console = open_context(cli), open_console()
    context.read_session(name)
    builder = build_session_graph(settings=context.settings, storage=context.storage)
    with (
        context.storage.lock(name),
        context.open_checkpoints() as saver,
        context.open_store() as facts,
    ):
        graph = builder.compile(checkpointer=saver)
        forget(context, console, graph, facts, name, topics, messages, sure=sure)


def forget(
    context: CliContext,
    console: Console,
    graph: Graph,
    facts_store: SqliteStore,
    name: str,
    topics: Sequence[str],
    messages: Sequence[str],
    *,
    sure: bool = False,
) -> None:
    """The same within a command that holds the session and has it open."""
    kept, thread = ReflectionStore(facts_store), make_thread_config(name)
    # No reflection may read what is about to go.
    with kept.hold_lease(name, time.time(), context.settings.reflection):
        if graph.get_state(thread).next:
            raise InputError(f"a turn of {name!r} is not finished: finish it with /retry in a chat")
        session, store = context.read_session(name)
        numbers = _find_numbers(session, store, topics, messages)
        plan = store.plan_purge(session, numbers)
        asked = [f"m{number}" for number in numbers]
        facts = kept.find_resting_on(name, asked)
        new = bool(plan.messages or facts)
        if new:
            _print_messages(console, session, store, plan)
        if facts:
            print_dim(console, "facts that rest on them:")
            console.print(render_facts(facts.values()))
        if new and not (sure or typer.confirm("Remove all of this for good?")):
            print_dim(console, "nothing was removed")
            return
        kept.forget(name, asked, plan.topics)
        left = list(purge_messages(graph, thread, context.storage, plan).left)
        if not compact_file(facts_store.conn):
            left.append("free pages of the file of facts: another process uses it")
    if new:
        count = len(plan.messages)
        removed = "1 message was removed; its place stays"
        many = f"{count} messages were removed; their places stay"
        print_dim(console, removed if count == 1 else many)
    else:
        # A purge that was killed may have left checkpoints.
        print_dim(console, "nothing to remove: all of it has been removed before")
    if facts:
        print_dim(console, f"facts removed with them: {len(facts)}")
    print_dim(console, "older checkpoints went too: there is no going back to one of them")
    for place in left:
        console.print(Text(f"not removed: {place}", style="yellow"), soft_wrap=True)


def run_delete(cli: CliOptions, names: Sequence[str], *, sure: bool) -> None:
    """Delete sessions with their checkpoints and facts; asks unless `sure`."""
    context, console = open_context(cli), open_console()
    stored = context.storage.sessions()
    for name in names:
        if name not in stored:  # its checkpoints are left, if deleting it was killed on the way
            context.read_session(name)
    listed = ", ".join(map(repr, names))
    if not (sure or typer.confirm(f"Delete all of {listed} for good?")):
        print_dim(console, "nothing was deleted")
        return
    with context.open_checkpoints() as saver, context.open_store() as facts:
        graph = build_session_graph(settings=context.settings, storage=context.storage)
        app = graph.compile(checkpointer=saver, store=facts)
        for name in names:
            with context.storage.lock(name):
                delete_session(app, name)
        compact_file(facts.conn)
    print_dim(console, f"deleted: {listed}")


def _find_numbers(
    session: Session, store: SessionStore, topics: Sequence[str], messages: Sequence[str]
) -> list[int]:
    """Numbers of the messages that are to go; raises `InputError` if some or all are missing."""
    numbers: set[int] = set()
    table = store.topic_table(session)
    for topic in topics:
        if topic not in table:
            raise InputError(f"session {session.id!r} has no topic {topic!r}")
        numbers |= {message.seq for message in store.topic_messages(table[topic])}
        planned = store.plan_purge(session, table[topic]).messages  # what was superseded in it too
        numbers |= set(map(parse_message_number, planned))
    for text in messages:
        named = [parse_message_number(i) for i in parse_message_ids(text, _WIDEST)]
        if not named or max(named) > session.count:
            there = f"m1 to m{session.count}" if session.count else "none"
            raise InputError(f"session {session.id!r} has no message {text!r} (there: {there})")
        numbers |= set(named)
    if not numbers:
        raise InputError("nothing to remove: name a topic that holds messages, or messages")
    return sorted(numbers)


def _print_messages(
    console: Console, session: Session, store: SessionStore, plan: PurgePlan
) -> None:
    numbers = list(map(parse_message_number, plan.messages[:_NAMED]))
    messages = [store.originals(session, number, number)[0] for number in numbers]
    for message in messages:
        text = f"{message.id} {message.day} {message.label}: {shorten(message.text, 60)}"
        console.print(Text(to_one_line(text)), soft_wrap=True)
    rest = len(plan.messages) - len(messages)
    if rest:
        print_dim(console, f"and {rest} more messages, up to {plan.messages[-1]}")
    table = store.topic_table(session)
    names = [f"{t} “{shorten(table[t].name, 40)}”" for t in plan.topics if t in table]
    if names:
        print_dim(console, to_one_line(f"names, briefs and summaries of {', '.join(names)}"))
