"""The commands and their options; the code of a command is imported when it runs.

topicloom [--folder DIR] [--language en] chat | replay | serve | ui | mcp | import | export
    | topics | topic | transcript | search | quote | receipt | sessions | review | reflect | facts
    | memory | person | purge | delete | doctor | check | repair

Annotations are no strings here: Typer would evaluate some hundreds of them before each prompt.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from topicloom.cli.console import CliOptions, open_console, print_dim
from topicloom.cli.topic import AsJson, Name, app as topic_app
from topicloom.state.language import LanguageChoice

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

Host = Annotated[str, typer.Option(help="Address to listen at.")]
Port = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=65535, help="Port to listen at; 0 takes any free one."),
]
User = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Name of the user who is talking. What is known of this user is"
        " known in all of their sessions.",
    ),
]
Scope = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Name of a project or a customer. Only sessions in it know what was said there.",
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Do not ask for confirmation. Required with --json.")
]


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


@app.command()
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
) -> None:
    """Chat in a session. It continues where it stopped."""
    from topicloom.cli.editor import start_chat

    start_chat(context.obj, name, window, user, scope)


@app.command()
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
    from topicloom.cli.replay import run_replay

    run_replay(context.obj, file, session, window, limit, questions=questions, as_json=json)


@app.command()
def serve(
    context: typer.Context,
    host: Host = "127.0.0.1",
    port: Port = 8321,
    postgres: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Keep sessions in this PostgreSQL database, not in the folder."
        ),
    ] = None,
    rate: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests that each key may send in a minute.")
    ] = 60,
    megabytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Largest size of a request, in megabytes.")
    ] = 32,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            envvar="TOPICLOOM_SERVE_ORIGINS",
            help="Allow web pages of this origin. You can give it more than once.",
        ),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            envvar="TOPICLOOM_SERVE_TRUST",
            help="Name of a key whose requests may say who is talking, in the"
            " header X-Topicloom-User. You can give it more than once. ''"
            " means the only key.",
        ),
    ] = None,
) -> None:
    """Run an endpoint for OpenAI's and Anthropic's protocols. Its keys: TOPICLOOM_SERVE_KEYS."""
    from topicloom.cli.serve import run_serve

    run_serve(context.obj, host, port, postgres, rate, megabytes, origin or (), trust or ())


@app.command()
def ui(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Name of the session. If not given, the built-in sample."
        ),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8322,
    edit: Annotated[bool, typer.Option("--edit", help="Allow changes from the start.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open the inspector: see a conversation, its memory and why it replied, and correct it."""
    print_dim(open_console(), "opening the inspector")  # imports alone take seconds
    from topicloom.cli.ui import run_ui

    run_ui(context.obj, name, host, port, edit=edit, browser=browser)


@app.command("import")
def import_(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[FORMAT] FILE...",
            help="Files, folders and archives that other chats exported. The"
            " content tells the format; you may also name it (chatgpt,"
            " claude, gemini, ...).",
        ),
    ],
    session: Annotated[
        str | None, typer.Option(help="Record all conversations in this session.")
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
    user: User = "",
    scope: Scope = "",
    json: AsJson = False,
) -> None:
    """Import conversations of other chats. Messages that are already there are skipped."""
    from topicloom.cli.importing import run_import

    run_import(
        context.obj,
        files,
        session,
        each=each,
        branches=branches,
        dry_run=dry_run,
        as_json=json,
        user=user,
        scope=scope,
    )


@app.command()
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
    from topicloom.cli.transfer import run_export

    run_export(context.obj, name, to, out, hide=hide)


@app.command()
def mcp(
    context: typer.Context,
    name: Name,
    http: Annotated[
        bool,
        typer.Option(
            "--http", help="Use streamable HTTP on this machine. If not given, stdio is used."
        ),
    ] = False,
    port: Port = 8323,
) -> None:
    """Let MCP clients read the memory of one session."""
    from topicloom.cli.reading import serve_mcp

    serve_mcp(context.obj, name, port if http else None)


@app.command()
def sessions(context: typer.Context, json: AsJson = False) -> None:
    """List the sessions of the folder."""
    from topicloom.cli.reading import show_sessions

    show_sessions(context.obj, as_json=json)


@app.command()
def topics(context: typer.Context, name: Name, json: AsJson = False) -> None:
    """Show the topics of a session over time."""
    from topicloom.cli.reading import show_topics

    show_topics(context.obj, name, as_json=json)


@app.command()
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
    from topicloom.cli.reading import show_found

    show_found(context.obj, name, text, since, until, limit, as_json=json)


@app.command()
def quote(
    context: typer.Context,
    name: Name,
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="Id of the message, such as m42.")
    ],
    json: AsJson = False,
) -> None:
    """Print a message, word for word."""
    from topicloom.cli.reading import show_quote

    show_quote(context.obj, name, message, as_json=json)


@app.command()
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
    from topicloom.cli.reading import show_transcript

    show_transcript(context.obj, name, topic, last, as_json=json)


@app.command()
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
    from topicloom.cli.reading import show_receipts

    show_receipts(context.obj, name, count, as_json=json)


@app.command()
def review(
    context: typer.Context,
    name: Name,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done, and why.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Review a session: summarize topics, archive old ones and merge those on the same subject."""
    from topicloom.cli.reflect import run_review

    run_review(context.obj, name, dry_run=dry_run, as_json=json)


@app.command()
def reflect(
    context: typer.Context,
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Run now, even if it is not due yet.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Find lasting facts about the user in the messages since the last time."""
    from topicloom.cli.reflect import run_reflect

    run_reflect(context.obj, name, force=force, as_json=json)


@app.command()
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
    from topicloom.cli.reflect import show_facts

    show_facts(context.obj, name, at, every=every, as_json=json)


@app.command()
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
    from topicloom.cli.memory import run_memory

    run_memory(context.obj, name, out, force=force, as_json=json)


@app.command()
def doctor(context: typer.Context, json: AsJson = False) -> None:
    """Check versions, folder, encoder and model. Exits with 1 if one of them does not work."""
    from topicloom.cli.doctor import run_doctor

    run_doctor(context.obj, as_json=json)


@app.command()
def check(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the session. If not given, all sessions."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check what is stored. Exits with 1 if something is wrong."""
    from topicloom.cli.doctor import run_check

    run_check(context.obj, name, as_json=json)


@app.command()
def repair(context: typer.Context, name: Name, json: AsJson = False) -> None:
    """Repair missing or damaged data from the transcript. Exits with 1 if any is left damaged."""
    from topicloom.cli.doctor import run_repair

    run_repair(context.obj, name, as_json=json)


@app.command()
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
    from topicloom.cli.purge import run_purge

    run_purge(context.obj, name, topic or (), message or (), sure=yes, as_json=json)


@app.command()
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
    delete: Annotated[
        bool,
        typer.Option(
            "--delete",
            help="Delete everything that is kept of the user for good, and print a receipt.",
        ),
    ] = False,
    key: Annotated[
        str,
        typer.Option(
            metavar="HEX",
            envvar="TOPICLOOM_RECEIPT_KEY",
            help="Key of the hashes in the receipt. If not given, a new one is made.",
        ),
    ] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Show, export or delete everything that is kept of a user in all sessions."""
    from topicloom.cli.person import run_person

    run_person(context.obj, name, export, delete=delete, key=key, sure=yes, as_json=json)


@app.command()
def delete(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names of sessions.")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Delete sessions for good: messages, topics, checkpoints and facts."""
    from topicloom.cli.purge import run_delete

    run_delete(context.obj, names, sure=yes, as_json=json)
