"""`topicloom reflect` and `topicloom facts`: what is kept of the user, and looking for more."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import datetime

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from rich.console import Console
from rich.table import Table
from rich.text import Text

from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import CliContext, open_context, open_roles
from topicloom.reflection.beside import ReflectionOptions, ReflectionResult, reflect_once
from topicloom.reflection.due import ReflectionPolicy
from topicloom.reflection.facts import Fact
from topicloom.reflection.reflect import Reflection
from topicloom.reflection.store import ReflectionStore

_NAMED = 6
"""Topics with new briefs that are named."""


def run_reflect(given: CliOptions, name: str, *, force: bool) -> None:
    """Reflect upon a session if it is due, and print what came of it.

    Raises:
        InvalidNameError: The name cannot name a session.
        InputError: There is no such session.
        SessionBusyError: It is being reflected upon.
        ConfigurationError: A model or the folder cannot be used.
        UnusableAnswerError: The reflector and its stand-in both failed.
    """
    place, console = open_context(given), open_console()
    place.read(name)
    with place.checkpoints() as saver, place.kept() as store:
        options = make_reflection_options(place, saver, store)
        once = reflect_once(name, force=force, **options)
        names = {update.topic: update.name for r in once.reflections for update in r.briefs}
    if not once.reflections:
        print_dim(console, _explain_not_due(once, place.settings.reflection))
    for reflection in once.reflections:
        _print_reflection(console, reflection)
    if names:
        shown = ", ".join(f"{topic} “{text}”" for topic, text in list(names.items())[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        print_dim(
            console, to_one_line(f"new briefs, from the next turn in a chat on: {shown}{more}")
        )


def show_facts(given: CliOptions, name: str, *, as_json: bool) -> None:
    """Print what is kept of the user, for people or as JSON lines."""
    place, console = open_context(given), open_console()
    place.read(name)
    with place.kept() as store:
        facts = ReflectionStore(store).facts(name)
    if as_json:
        for key, fact in facts.items():
            sys.stdout.write(json.dumps({"key": key, **fact.value}, ensure_ascii=False) + "\n")
    elif facts:
        console.print(render_facts(facts.values()))
    else:
        print_dim(console, f"no facts yet; look for some with: topicloom reflect {name} --force")


def make_reflection_options(
    place: CliContext, saver: BaseCheckpointSaver[str], store: BaseStore
) -> ReflectionOptions:
    """What reflection needs of a workplace.

    Raises:
        ConfigurationError: A model cannot be opened.
    """
    return {
        "checkpointer": saver,
        "storage": place.storage,
        "store": store,
        "roles": open_roles(place),
        "policy": place.settings.reflection,
    }


def render_facts(facts: Iterable[Fact]) -> Table:
    """Facts with the day and the messages that they rest on."""
    table = Table.grid(padding=(0, 2))
    for fact in facts:
        day = Text(to_one_line(fact.at[:10]), style="dim")
        messages = Text(to_one_line(", ".join(fact.messages)), style="dim")
        table.add_row(day, Text(to_one_line(fact.text)), messages)
    return table


def _print_reflection(console: Console, done: Reflection) -> None:
    print_dim(console, f"read {done.read} messages, up to m{done.upto}: {_describe_found(done)}")
    if done.facts:
        console.print(render_facts(done.facts))
    for reason, count in done.dropped.items():
        print_dim(console, f"left out {count}: {reason}")
    for call in done.calls:
        if call.failure:
            console.print(Text(to_one_line(f"{call.role} failed: {call.failure}"), style="yellow"))


def _describe_found(done: Reflection) -> str:
    new = len(done.facts)
    replaced = f", {len(done.retired)} of before replaced" if done.retired else ""
    return f"{new or 'no'} {'fact' if new == 1 else 'facts'}{replaced}"


def _explain_not_due(once: ReflectionResult, policy: ReflectionPolicy) -> str:
    state = once.state
    if not state.pending:
        return "nothing was said since the last reflection"
    last = state.last_at
    said = f", the last at {datetime.fromtimestamp(last):%H:%M on %d %B %Y}" if last else ""
    return (
        f"not due: {state.pending} of {policy.turns} rounds since the last reflection{said}; "
        f"after {policy.idle_seconds / 60:g} minutes of silence any number will do. --force does "
        "it now"
    )
