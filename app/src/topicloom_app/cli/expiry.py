"""`topicloom expire`: what is too old ends, in one session, in those of a user, or in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
from rich.console import Console

from topicloom import Expired, InputError, PersonMemory, RetentionPolicy, TopicLoomError
from topicloom.hosting import Graph, expire_due
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_line,
    show_error,
)
from topicloom_app.cli.context import open_context
from topicloom_app.cli.words import say


def run_expire(
    cli: CliOptions,
    name: str | None,
    user: str,
    days: Mapping[str, float | None],
    *,
    dry_run: bool,
    sure: bool,
    as_json: bool,
) -> None:
    """Show what is too old, ask unless `sure`, and remove it; as JSON nobody is asked.

    A session that is in use is left for the next time, and named on stderr.

    Args:
        name: The session; None for all, or for those of the `user`.
        days: How many days of what are kept, in the place of the settings.
    """
    context, console = open_context(cli), open_console(quiet=as_json)
    given = {what: count for what, count in days.items() if count is not None}
    policy = RetentionPolicy.model_validate(given) if given else context.settings.retention
    if name is not None:
        context.read_session(name)
    with context.open_graph() as (graph, *_):
        names = [name] if name is not None else context.storage.sessions()
        if user:
            names = [thread.thread for thread in PersonMemory(graph, user).threads()]
        shown = _expire(graph, names, policy, dry_run=True)
        _show(console, shown)
        if not dry_run and shown and not as_json:
            sure = sure or typer.confirm(say("Remove all of this for good?"))
        done = _expire(graph, [*shown], policy) if sure and not dry_run else {}
    for place in dict.fromkeys(place for one in done.values() for place in one.left):
        print_line(console, "not removed: {place}", style="yellow", place=say(place))
    if not dry_run:
        print_dim(console, "removed" if done else "nothing was removed")
    if as_json:
        print_json(_to_row(thread, one, done) for thread, one in shown.items())


def _expire(
    graph: Graph, names: list[str], policy: RetentionPolicy, *, dry_run: bool = False
) -> dict[str, Expired]:
    """What is too old, by session, and removed unless it is a `dry_run`."""
    ended = dict[str, Expired]()
    for name in names:
        try:
            one = expire_due(graph, name, policy, dry_run=dry_run)
        except InputError:
            if not policy.ends_anything:
                raise
            show_error(say("session {name!r} is in use: it is left for the next time", name=name))
        except TopicLoomError as error:
            show_error(error)
        else:
            ended |= {name: one} if one else {}
    return ended


def _show(console: Console, shown: Mapping[str, Expired]) -> None:
    for name, one in shown.items():
        counts = (
            (len(one.messages), "message"),
            (len(one.facts), "fact"),
            (one.receipts, "receipt"),
        )
        told = ", ".join(count_of(count, what) for count, what in counts if count)
        until = max((m.day for m in one.messages), default="")
        line = "{name}: {told}, up to {until}" if until else "{name}: {told}"
        print_line(console, line, name=name, told=told, until=until)


def _to_row(thread: str, one: Expired, done: Mapping[str, Expired]) -> dict[str, Any]:
    return {
        "session": thread,
        "messages": [message.id for message in one.messages],
        "facts": [fact.text for fact in one.facts.values()],
        "receipts": one.receipts,
        "removed": thread in done,
        "left": list(done[thread].left) if thread in done else [],
    }
