"""Commands that serve others until they are ended: an endpoint, the inspector, MCP."""

from typing import Annotated

import typer

from topicloom.cli.options import Host, Name, Port


def serve(
    context: typer.Context,
    host: Host = "127.0.0.1",
    port: Port = 8321,
    postgres: Annotated[
        str | None, typer.Option(metavar="URL", help="Keep sessions there, not in the folder.")
    ] = None,
    rate: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests of a key in a minute.")
    ] = 60,
    megabytes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Largest size of a request.")
    ] = 32,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            envvar="TOPICLOOM_SERVE_ORIGINS",
            help="Allow web pages of this origin; can be repeated.",
        ),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            envvar="TOPICLOOM_SERVE_TRUST",
            help="Name of a key that may say who is talking, by X-Topicloom-User; may be given"
            " again. '' for the only key.",
        ),
    ] = None,
) -> None:
    """Run an endpoint for OpenAI's and Anthropic's protocols. Keys: TOPICLOOM_SERVE_KEYS."""
    import topicloom.serve  # noqa: F401 - says which package is missing
    from topicloom.cli.serve import run_serve

    run_serve(context.obj, host, port, postgres, rate, megabytes, origin or (), trust or ())


def ui(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the session; the packaged sample if none."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 8322,
    edit: Annotated[bool, typer.Option("--edit", help="Allow changes from the start.")] = False,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Open the inspector: see a conversation, its memory and why it replied, and correct it."""
    import topicloom.serve  # noqa: F401 - says which package is missing
    from topicloom.cli.serve import run_ui

    run_ui(context.obj, name, host, port, edit=edit, browser=browser)


def mcp(
    context: typer.Context,
    name: Name,
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP on this machine; stdio if not given.")
    ] = False,
    port: Port = 8323,
) -> None:
    """Let MCP clients read the memory of one session."""
    from topicloom.cli.reading import serve_mcp

    serve_mcp(context.obj, name, port if http else None)
