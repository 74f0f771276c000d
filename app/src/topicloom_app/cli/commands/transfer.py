"""Commands that bring conversations in and take them out: import, export, memory files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from topicloom_app.cli.options import AsJson, Name, Scope, User


def import_(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[FORMAT] FILE",
            help="Files, folders and archives that other chats exported. The"
            " content tells the format; you may also name it (chatgpt,"
            " claude, gemini, ...).",
        ),
    ],
    session: Annotated[
        str | None,
        typer.Option(
            help="Record all conversations in this session. If not given, in one that has the name"
            " of the first file."
        ),
    ] = None,
    each: Annotated[
        bool,
        typer.Option("--each", help="Record each conversation in a session named by its title."),
    ] = False,
    branches: Annotated[
        bool,
        typer.Option("--branches", help="Also import edited messages and second answers."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be recorded.")
    ] = False,
    me: Annotated[
        list[str] | None,
        typer.Option(
            help="Your name in conversations of several people: what others say there is no fact"
            " about you. Can be given several times."
        ),
    ] = None,
    timezone: Annotated[
        str,
        typer.Option(
            metavar="ZONE",
            help="Time zone of the days and hours, such as Europe/Paris. If not given, that of"
            " the user or of this machine.",
        ),
    ] = "",
    day_first: Annotated[
        bool | None,
        typer.Option(
            "--day-first/--month-first",
            help="Read 1/2/2026 as 1 February or as 2 January. Needed only if the export does"
            " not tell.",
        ),
    ] = None,
    user: User = "",
    scope: Scope = "",
    json: AsJson = False,
) -> None:
    """Import conversations of other chats. Messages that are already there are skipped."""
    from topicloom_app.cli.importing import run_import

    run_import(
        context.obj,
        files,
        session,
        each=each,
        branches=branches,
        dry_run=dry_run,
        timezone=timezone,
        day_first=day_first,
        as_json=json,
        user=user,
        scope=scope,
        me=me or (),
    )


def export(
    context: typer.Context,
    name: Name,
    to: Annotated[
        Literal["markdown", "jsonl", "html"], typer.Option(help="Format to write.")
    ] = "markdown",
    out: Annotated[
        Path | None, typer.Option(help="File to write. If not given, it is printed.")
    ] = None,
    hide: Annotated[
        bool,
        typer.Option(
            "--hide-texts",
            help="Replace all letters and digits, so that you can attach the file to a bug report.",
        ),
    ] = False,
) -> None:
    """Export a session, to read it or to import it elsewhere."""
    from topicloom_app.cli.transfer import run_export

    run_export(context.obj, name, to, out, hide=hide)


def memory(
    context: typer.Context,
    name: Name,
    out: Annotated[
        Path, typer.Option(help="Folder for the files. It is made if it does not exist.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that were edited by hand.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write the topics as Markdown files, for tools that search files."""
    from topicloom_app.cli.memory import run_memory

    run_memory(context.obj, name, out, force=force, as_json=json)
