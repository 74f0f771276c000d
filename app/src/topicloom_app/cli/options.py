"""Arguments and options that several commands share."""

from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the session.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]
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
Limits = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FOR=N",
        help="Daily limit of what models may use: session=N, user=N, key=N, key:NAME=N or"
        " process=N, in tokens. You can give it more than once.",
    ),
]
