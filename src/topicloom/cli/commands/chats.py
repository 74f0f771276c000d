"""Commands that talk: chat and replay."""

from pathlib import Path
from typing import Annotated

import typer

from topicloom.cli.options import AsJson, Name, Scope, User


def chat(
    context: typer.Context,
    name: Name = "default",
    window: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1_000,
            help="Main window in tokens: the model's, or 32,000. Small ones split often.",
        ),
    ] = None,
    user: User = "",
    scope: Scope = "",
) -> None:
    """Chat. A session continues where it stopped."""
    from topicloom.cli.editor import start_chat

    start_chat(context.obj, name, window, user, scope)


def replay(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="A recorded conversation; the packaged sample if none."
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(help="Keep it as this session, or continue one. Not kept if you give none."),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1_000,
            help="Main window in tokens: 16,000. Small ones split often.",
        ),
    ] = None,
    questions: Annotated[bool, typer.Option(help="Whether to ask the recording's questions.")] = (
        True
    ),
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Replay only this many messages."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Replay a recorded conversation, watch its topics form, and ask about it."""
    from topicloom.cli.replay import run_replay

    run_replay(context.obj, file, session, window, limit, questions=questions, as_json=json)
