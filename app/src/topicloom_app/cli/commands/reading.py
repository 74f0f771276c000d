"""Commands that print what a session holds."""

from typing import Annotated

import typer

from topicloom_app.cli.options import AsJson, Name


def sessions(context: typer.Context, json: AsJson = False) -> None:
    """List the sessions of the folder."""
    from topicloom_app.cli.reading import show_sessions

    show_sessions(context.obj, as_json=json)


def topics(context: typer.Context, name: Name, json: AsJson = False) -> None:
    """Show the topics of a session over time."""
    from topicloom_app.cli.reading import show_topics

    show_topics(context.obj, name, as_json=json)


def search(
    context: typer.Context,
    name: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to search for, in any words.")],
    since: Annotated[
        str | None, typer.Option(help="First day to search, such as 2026-03-02.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Last day to search.")] = None,
    limit: Annotated[
        int,
        typer.Option("-n", "--limit", metavar="N", min=1, help="Show at most this many messages."),
    ] = 10,
    json: AsJson = False,
) -> None:
    """Search all messages, in topics or not."""
    from topicloom_app.cli.reading import show_found

    show_found(context.obj, name, text, since, until, limit, as_json=json)


def quote(
    context: typer.Context,
    name: Name,
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="Id of the message, such as m42.")
    ],
    json: AsJson = False,
) -> None:
    """Print a message, word for word."""
    from topicloom_app.cli.reading import show_quote

    show_quote(context.obj, name, message, as_json=json)


def transcript(
    context: typer.Context,
    name: Name,
    topic: Annotated[str | None, typer.Option(help="Print only this topic, such as t3.")] = None,
    last: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Print only this many of the newest messages."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Print what was said, word for word."""
    from topicloom_app.cli.reading import show_transcript

    show_transcript(context.obj, name, topic, last, as_json=json)


def receipt(
    context: typer.Context,
    name: Name,
    count: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--count",
            metavar="N",
            min=1,
            help="Number of turns. The default is 1, with --json all.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what the newest turns read, quoted and cost."""
    from topicloom_app.cli.reading import show_receipts

    show_receipts(context.obj, name, count, as_json=json)
