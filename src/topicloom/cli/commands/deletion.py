"""Commands that remove messages, sessions, and everything of one user."""

from pathlib import Path
from typing import Annotated

import typer

from topicloom.cli.options import AsJson, Name, Yes


def purge(
    context: typer.Context,
    name: Name,
    topic: Annotated[
        list[str] | None, typer.Option(help="All messages of a topic, such as t3.")
    ] = None,
    message: Annotated[
        list[str] | None, typer.Option(help="A message or a range: m12, m12-m15.")
    ] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Remove messages for good, with everything made of them. Lists them first.

    Older checkpoints go too: there is no going back to before.
    """
    from topicloom.cli.purge import run_purge

    run_purge(context.obj, name, topic or (), message or (), sure=yes, as_json=json)


def person(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user, as --user names it.")],
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all of the user there, a JSON line each."),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete all of the user for good, with a receipt.")
    ] = False,
    key: Annotated[
        str,
        typer.Option(
            metavar="HEX",
            envvar="TOPICLOOM_RECEIPT_KEY",
            help="Key of the receipt's hashes; a new one if not given.",
        ),
    ] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Show everything that is kept of a user over all sessions, export it, or delete it."""
    from topicloom.cli.person import run_person

    run_person(context.obj, name, export, delete=delete, key=key, sure=yes, as_json=json)


def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of sessions.")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Delete sessions for good: messages, topics, checkpoints and facts."""
    from topicloom.cli.purge import run_delete

    run_delete(context.obj, names, sure=yes, as_json=json)
