"""Arguments and options that several commands share."""

from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the session.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
Host = Annotated[str, typer.Option(help="Address to listen at.")]
Port = Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0 for any that is free.")]
User = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Who is talking: what is known of this user is known in all of the user's sessions.",
    ),
]
Scope = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A project or a customer: only sessions in it know what was said there.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask. With --json this is required.")]
