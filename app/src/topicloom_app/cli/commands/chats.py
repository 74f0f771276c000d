"""Commands that talk: demo, chat and replay."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from topicloom_app.cli.console import open_console, print_dim
from topicloom_app.cli.options import AsJson, Limits, Name, Scope, User


def demo(context: typer.Context) -> None:
    """See how questions on a long conversation are answered, then ask your own. Needs no key."""
    console = open_console()
    if console.is_terminal:
        print_dim(console, "topicloom: opening a conversation of three months")
    from topicloom_app.cli.demo import run_demo

    run_demo(context.obj)


def chat(
    context: typer.Context,
    name: Name = "default",
    window: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1_000,
            help="Main window in tokens. The default is the model's own, or"
            " 32,000. A small window splits often.",
        ),
    ] = None,
    user: User = "",
    scope: Scope = "",
    limit: Limits = None,
) -> None:
    """Chat in a session. It continues where it stopped."""
    console = open_console()
    if console.is_terminal:
        print_dim(console, "topicloom: opening session {name}", name=name)
    from topicloom_app.cli.chat import run_chat

    run_chat(replace(context.obj, limits=limit or ()), name, window, user, scope)


def replay(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="File with a recorded conversation. If not given, the built-in sample.",
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            help="Session to keep the replay in, or to continue. If not given,"
            " the replay is not kept."
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1_000,
            help="Main window in tokens. The default is 16,000. A small window splits often.",
        ),
    ] = None,
    questions: Annotated[bool, typer.Option(help="Ask the questions of the recording.")] = True,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Replay only this many messages."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Replay a recorded conversation, watch its topics form, and ask about it."""
    from topicloom_app.cli.replay import run_replay

    run_replay(context.obj, file, session, window, limit, questions=questions, as_json=json)
