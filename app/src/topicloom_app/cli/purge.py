"""`topicloom purge` and `delete`: remove messages or sessions for good, after naming them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from topicloom import Forgotten, Memory, MemoryTopic
from topicloom.hosting import name_thread
from topicloom_app.cli._views import say_speaker, shorten
from topicloom_app.cli.console import CliOptions, open_console, print_dim, print_json, print_line
from topicloom_app.cli.context import CliContext, open_context
from topicloom_app.cli.reflect import render_facts
from topicloom_app.cli.words import say, say_plural

_NAMED = 12
"""Messages that are shown before they are removed."""


def run_purge(
    cli: CliOptions,
    name: str,
    topics: Sequence[str],
    messages: Sequence[str],
    *,
    sure: bool,
    as_json: bool,
) -> None:
    """Name what will be removed, ask unless `sure`, and remove it.

    All messages of `topics` go, and `messages`, which are short ids or ranges: `m12`, `m12-m15`.
    As JSON nobody is asked: nothing goes unless `sure`.
    """
    context, console = open_context(cli), open_console()
    context.read_session(name)
    with context.open_graph() as (graph, *_), context.storage.lock(name):
        memory = Memory.of(graph, name_thread(name))
        what = [*topics, *messages]
        if as_json:
            shown = memory.forget(*what, dry_run=True)
            left = memory.forget(*what).left if sure else ()
            print_json([_to_row(shown) | {"left": list(left), "removed": sure}])
        else:
            forget(console, memory, what, sure=sure)


def forget(console: Console, memory: Memory, what: Sequence[str], *, sure: bool = False) -> None:
    """The same within a command that holds the session and has it open."""
    shown = memory.forget(*what, dry_run=True)
    facts, new = shown.facts, bool(shown.messages or shown.facts)
    if new:
        _print_messages(console, shown, {t.id: t for t in memory.topics()})
    if facts:
        print_dim(console, "facts that rest on them:")
        console.print(render_facts(facts.values()))
    if new and not (sure or typer.confirm(say("Remove all of this for good?"))):
        print_dim(console, "nothing was removed")
        return
    left = memory.forget(*what).left
    if new:
        one = "{count} message was removed; its place stays"
        many = "{count} messages were removed; their places stay"
        print_dim(console, say_plural(one, many, len(shown.messages)))
    else:
        # A purge that was killed may have left checkpoints.
        print_dim(console, "nothing to remove: all of it has been removed before")
    if facts:
        print_dim(console, "facts removed with them: {facts}", facts=len(facts))
    print_dim(console, "older checkpoints went too: there is no going back to one of them")
    for place in left:
        print_line(console, "not removed: {place}", style="yellow", place=say(place))


def _to_row(shown: Forgotten) -> dict[str, Any]:
    messages, facts = [m.id for m in shown.messages], [f.text for f in shown.facts.values()]
    return {"messages": messages, "topics": shown.topics, "facts": facts}


def run_delete(cli: CliOptions, names: Sequence[str], *, sure: bool, as_json: bool) -> None:
    """Delete sessions with their checkpoints and facts; asks unless `sure`.

    As JSON nobody is asked: nothing goes unless `sure`.
    """
    context, console = open_context(cli), open_console()
    for name in names:
        context.check_session(name)  # checkpoints alone are left if deleting it was killed
    listed = ", ".join(map(repr, names))
    if as_json:
        if sure:
            _delete(context, names)
        print_json({"session": name, "deleted": sure} for name in names)
    elif sure or typer.confirm(say("Delete all of {names} for good?", names=listed)):
        _delete(context, names)
        print_dim(console, "deleted: {names}", names=listed)
    else:
        print_dim(console, "nothing was deleted")


def _delete(context: CliContext, names: Sequence[str]) -> None:
    with context.open_graph() as (graph, *_):
        for name in names:
            with context.storage.lock(name):
                Memory.of(graph, name_thread(name)).delete()


def _print_messages(console: Console, shown: Forgotten, topics: Mapping[str, MemoryTopic]) -> None:
    for message in shown.messages[:_NAMED]:
        text = f"{message.id} {message.day} {say_speaker(message)}: {message.text}"
        console.print(Text(shorten(text, console.width)))
    rest = len(shown.messages) - _NAMED
    if rest > 0:
        print_dim(
            console, "and {rest} more messages, up to {last}", rest=rest, last=shown.messages[-1].id
        )
    names = [f"{t} “{shorten(topics[t].name, 40)}”" for t in shown.topics if t in topics]
    if names:
        print_line(
            console, "names, briefs and summaries of {names}", style="dim", names=", ".join(names)
        )
