"""Commands that review a session and reflect upon it."""

from typing import Annotated

import typer

from topicloom_app.cli.options import AsJson, Name


def review(
    context: typer.Context,
    name: Name,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done, and why.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Review a session: summarize topics, archive old ones and merge those on the same subject."""
    from topicloom_app.cli.reflect import run_review

    run_review(context.obj, name, dry_run=dry_run, as_json=json)


def reflect(
    context: typer.Context,
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Run now, even if it is not due yet.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Find lasting facts about the user in the messages since the last time."""
    from topicloom_app.cli.reflect import run_reflect

    run_reflect(context.obj, name, force=force, as_json=json)


def facts(
    context: typer.Context,
    name: Name,
    at: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="Show what was true on this day, such as 2026-03-01."),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Show facts that are no longer true too, in sessions of a user."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """List the facts about the user, with the messages that they rest on."""
    from topicloom_app.cli.reflect import show_facts

    show_facts(context.obj, name, at, every=every, as_json=json)
