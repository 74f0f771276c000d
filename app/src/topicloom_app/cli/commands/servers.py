"""Commands that serve others until they are ended: an endpoint, the inspector, MCP."""

from dataclasses import replace
from typing import Annotated

import typer

from topicloom_app.cli.console import open_console, print_dim
from topicloom_app.cli.options import Host, Limits, Name, Port


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
    limit: Limits = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record",
            help="Also record requests that ask for store: false, as coding agents do.",
        ),
    ] = False,
) -> None:
    """Run an endpoint for OpenAI's and Anthropic's protocols. Its keys: TOPICLOOM_SERVE_KEYS."""
    from topicloom_app.cli.serve import run_serve

    cli, sizes = replace(context.obj, limits=limit or ()), (rate, megabytes)
    run_serve(cli, host, port, postgres, *sizes, origin or (), trust or (), record=record)


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
    from topicloom_app.cli.ui import run_ui

    run_ui(context.obj, name, host, port, edit=edit, browser=browser)


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
    from topicloom_app.cli.reading import serve_mcp

    serve_mcp(context.obj, name, port if http else None)
