"""Commands that remove messages, sessions, and everything of one user."""

from pathlib import Path
from typing import Annotated

import typer

from topicloom_app.cli.options import AsJson, Name, Yes

Days = Annotated[
    float | None,
    typer.Option(metavar="DAYS", min=0.001, help="Keep this many days; remove what is older."),
]


def purge(
    context: typer.Context,
    name: Name,
    topic: Annotated[
        list[str] | None, typer.Option(help="Remove all messages of this topic, such as t3.")
    ] = None,
    message: Annotated[
        list[str] | None, typer.Option(help="Remove this message or range, such as m12 or m12-m15.")
    ] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Remove messages for good, with everything that was made of them. It lists them first.

    Older checkpoints are removed too, so you cannot go back to a time before.
    """
    from topicloom_app.cli.purge import run_purge

    run_purge(context.obj, name, topic or (), message or (), sure=yes, as_json=json)


def expire(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the session. If not given, all sessions."),
    ] = None,
    user: Annotated[
        str, typer.Option(metavar="NAME", help="Only sessions of this user, all of them.")
    ] = "",
    messages: Days = None,
    receipts: Days = None,
    facts: Days = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed.")
    ] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Remove for good what is older than a number of days. It shows first how much that is.

    Without --messages, --receipts or --facts it goes by the settings TOPICLOOM_RETENTION__...
    """
    from topicloom_app.cli.expiry import run_expire

    days = {"messages": messages, "receipts": receipts, "facts": facts}
    run_expire(context.obj, name, user, days, dry_run=dry_run, sure=yes, as_json=json)


def person(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the user, as given with --user.")
    ],
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write everything that is kept of the user to this file, one JSON object a line.",
        ),
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE",
            help="Keep where the user is, such as Europe/Paris, for all sessions that do not say"
            " it; '' for nowhere.",
        ),
    ] = None,
    delete: Annotated[
        bool,
        typer.Option(
            "--delete",
            help="Delete everything that is kept of the user for good, and print a receipt.",
        ),
    ] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Show, export or delete everything that is kept of a user in all sessions."""
    from topicloom_app.cli.person import run_person

    run_person(context.obj, name, export, timezone=timezone, delete=delete, sure=yes, as_json=json)


def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Names of sessions.")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Delete sessions for good: messages, topics, checkpoints and facts."""
    from topicloom_app.cli.purge import run_delete

    run_delete(context.obj, names, sure=yes, as_json=json)
