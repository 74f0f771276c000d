"""`topicloom person`: everything that is kept of a user, to show, to export and to delete."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from topicloom import DeletionReceipt, PersonMemory, PersonThread
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_line,
    to_one_line,
    write_file,
)
from topicloom_app.cli.context import open_context
from topicloom_app.cli.reflect import render_spans
from topicloom_app.cli.words import say


def run_person(
    cli: CliOptions,
    name: str,
    out: Path | None,
    *,
    timezone: str | None,
    delete: bool,
    sure: bool,
    as_json: bool,
) -> None:
    """Show a user's threads and facts, say where the user is, write all of the user into a file, or
    delete it.

    Deleting asks unless `sure`; as JSON nobody is asked, and nothing goes unless `sure`.

    Raises:
        InputError: The file cannot be written, or there is no such zone.
    """
    context, console = open_context(cli), open_console(quiet=as_json)
    with context.open_graph() as (graph, *_):
        person = PersonMemory(graph, name)
        if timezone is not None:
            person.set_timezone(timezone)
        threads = person.threads()
        if out is not None:
            count = _write(out, person)
            print_dim(console, f"{count_of(count, 'row')}: {to_one_line(str(out))}")
        elif not as_json:
            _show(console, person, threads)
        if not delete:
            if as_json:
                print_json(person.export())
        elif sure or (
            not as_json and typer.confirm(say("Delete all of {user!r} for good?", user=name))
        ):
            _report(console, name, person.delete(), as_json=as_json)
        else:
            print_dim(console, "nothing was deleted")
            if as_json:
                print_json([{"user": name, "deleted": False}])


def _report(console: Console, name: str, receipt: DeletionReceipt, *, as_json: bool) -> None:
    if as_json:
        print_json([{"user": name, "deleted": True, "receipt": asdict(receipt)}])
        return
    console.print_json(data=asdict(receipt))
    for place in receipt.left:
        print_line(console, "not removed: {place}", style="yellow", place=say(place))


def _show(console: Console, person: PersonMemory, threads: list[PersonThread]) -> None:
    if zone := person.timezone():
        print_line(console, "time zone: {zone}", zone=zone)
    if not threads:
        print_dim(console, "no session belongs to the user {user!r}", user=person.user)
        print_dim(console, "a session belongs to a user if it was begun with --user or user_id")
        return
    table = Table.grid(padding=(0, 2))
    for thread in threads:
        days = " – ".join(dict.fromkeys((thread.first[:10], thread.last[:10])))
        table.add_row(
            Text(to_one_line(thread.thread)),
            Text(to_one_line(thread.scope), style="cyan"),
            Text(days, style="dim"),
            count_of(thread.messages, "message"),
            count_of(thread.topics, "topic"),
            count_of(thread.facts, "fact"),
        )
    console.print(table)
    spans = person.fact_spans()
    if spans:
        console.print(render_spans(spans))


def _write(out: Path, person: PersonMemory) -> int:
    rows = person.export()
    write_file(out, (json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return len(rows)
