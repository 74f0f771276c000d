"""The list of all commands, in the order of the help. `cli/commands/` has their options.

topicloom [--folder DIR] [--language en] demo | chat | replay | serve | ui | mcp | import | export
    | topics | topic | transcript | search | quote | receipt | sessions | review | reflect | facts
    | memory | person | purge | expire | delete | doctor | check | repair | key

Annotations are no strings here, nor there: Typer would evaluate some hundreds of them before each
prompt.
"""

from pathlib import Path
from typing import Annotated

import typer

from topicloom.hosting import LanguageChoice
from topicloom_app.cli.commands import (
    chats,
    checks,
    deletion,
    reading,
    reviewing,
    servers,
    transfer,
)
from topicloom_app.cli.console import CliOptions
from topicloom_app.cli.keys import app as key_app
from topicloom_app.cli.topic import app as topic_app

app = typer.Typer(
    name="topicloom",
    help="One chat session that never ends: each topic in a window of its own.",
    epilog="Exit codes: 0 means that all went well. 1 means that check, repair or doctor found"
    " something wrong. 2 means that one line says what is wrong and what you can do about it."
    " 130 means that you pressed Ctrl-C.\n\n"
    "To complete commands in your shell, run `topicloom --install-completion` once.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(topic_app, name="topic")
app.add_typer(key_app, name="key")


def _version(wanted: bool) -> None:
    if wanted:
        from topicloom import __version__

        typer.echo(f"topicloom {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the sessions. If not given, TOPICLOOM_FOLDER or your data folder."
        ),
    ] = None,
    language: Annotated[
        LanguageChoice | None,
        typer.Option(
            help="Language of prompts and commands. With auto, prompts follow"
            " the conversation and commands follow the terminal."
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Options of every command."""
    context.obj = CliOptions(folder, language)


app.command()(chats.demo)
app.command()(chats.chat)
app.command()(chats.replay)
app.command()(servers.serve)
app.command()(servers.ui)
app.command("import")(transfer.import_)
app.command()(transfer.export)
app.command()(servers.mcp)
app.command()(reading.sessions)
app.command()(reading.topics)
app.command()(reading.search)
app.command()(reading.quote)
app.command()(reading.transcript)
app.command()(reading.receipt)
app.command()(reviewing.review)
app.command()(reviewing.reflect)
app.command()(reviewing.facts)
app.command()(transfer.memory)
app.command()(checks.doctor)
app.command()(checks.check)
app.command()(checks.repair)
app.command()(deletion.purge)
app.command()(deletion.expire)
app.command()(deletion.person)
app.command()(deletion.delete)
