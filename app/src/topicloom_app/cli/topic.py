"""`topicloom topic ...`: what a person changes of a session's topics, each change to be undone."""

from collections.abc import Callable
from dataclasses import asdict
from os import environ
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from topicloom_app.cli.console import CliOptions, open_console, print_dim, print_json, to_one_line
from topicloom_app.cli.options import AsJson, Name

if TYPE_CHECKING:
    from topicloom import Memory, MemoryTopic

app = typer.Typer(
    help="Rename, move, merge, split, pin and archive topics. Each change can be undone.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Id of the topic, such as t3.")]
Into = Annotated[
    str, typer.Argument(metavar="INTO", help="Topic that receives the messages, such as t5.")
]
Called = Annotated[str, typer.Argument(metavar="TITLE", help="New name of the topic.")]
Messages = Annotated[
    str, typer.Argument(metavar="MESSAGES", help="Messages or a range, such as m12 or m12-m15.")
]


@app.command()
def rename(
    context: typer.Context, name: Name, topic: Topic, title: Called, json: AsJson = False
) -> None:
    """Rename a topic. It keeps this name from then on."""
    _change(context.obj, name, lambda memory: memory.rename(topic, title), json)


@app.command()
def move(
    context: typer.Context, name: Name, messages: Messages, topic: Into, json: AsJson = False
) -> None:
    """Move messages into a topic. Whole rounds are moved."""
    _change(context.obj, name, lambda memory: memory.move(messages, topic), json)


@app.command()
def split(
    context: typer.Context,
    name: Name,
    topic: Topic,
    messages: Messages,
    title: Called,
    json: AsJson = False,
) -> None:
    """Make a new topic from messages of another."""
    _change(context.obj, name, lambda memory: memory.split(topic, messages, title), json)


@app.command()
def merge(
    context: typer.Context, name: Name, topic: Topic, into: Into, json: AsJson = False
) -> None:
    """Merge a topic into another."""
    _change(context.obj, name, lambda memory: memory.merge(topic, into), json)


@app.command()
def pin(
    context: typer.Context,
    name: Name,
    topic: Topic,
    off: Annotated[bool, typer.Option("--off", help="Unpin the topic.")] = False,
    json: AsJson = False,
) -> None:
    """Keep a topic active, so that it is read for every reply."""
    _change(context.obj, name, lambda memory: memory.pin(topic, not off), json)


@app.command()
def archive(context: typer.Context, name: Name, topic: Topic, json: AsJson = False) -> None:
    """Archive a topic. From then on only questions about the past find it."""
    _change(context.obj, name, lambda memory: memory.archive(topic), json)


@app.command()
def restore(context: typer.Context, name: Name, topic: Topic, json: AsJson = False) -> None:
    """Take a topic out of the archive."""
    _change(context.obj, name, lambda memory: memory.restore(topic), json)


@app.command()
def changes(context: typer.Context, name: Name, json: AsJson = False) -> None:
    """List what people and reviews changed."""
    console, found = open_console(), _open(context.obj, name).changes()
    if json:
        print_json(map(asdict, found))
        return
    for change in found:
        head = Text(f"{change.id} {change.time[:16].replace('T', ' ')} ", style="dim")
        done = Text(to_one_line(change.event), style="strike" if change.undone else "")
        console.print(head.append(done), soft_wrap=True)


@app.command()
def undo(
    context: typer.Context,
    name: Name,
    change: Annotated[
        str,
        typer.Argument(
            metavar="CHANGE",
            help="Id of the change. If not given, the newest change that a person made.",
        ),
    ] = "",
    json: AsJson = False,
) -> None:
    """Undo a change that a person or a review made."""
    undone = _open(context.obj, name).undo(change)
    if json:
        print_json([asdict(undone)])
    else:
        print_dim(open_console(), "undone: {change}", change=to_one_line(undone.event))


def _open(cli: CliOptions, name: str) -> "Memory":
    from topicloom_app.cli.context import open_context

    memory = open_context(cli).open_memory(name)
    memory.author = environ.get("USER") or environ.get("USERNAME") or "user"
    return memory


def _change(
    cli: CliOptions, name: str, change: Callable[["Memory"], "MemoryTopic"], as_json: bool
) -> None:
    memory = _open(cli, name)
    change(memory)
    made = memory.changes()[-1]
    if as_json:
        print_json([asdict(made)])
    else:
        print_dim(open_console(), to_one_line(made.event))
