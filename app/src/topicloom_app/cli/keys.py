"""`topicloom key ...`: the key that what is stored is encrypted with."""

from typing import Annotated

import typer

app = typer.Typer(
    help="Make a key, and encrypt what is stored.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command()
def new() -> None:
    """Print a new key. Keep a copy: without it, nothing can be read any more."""
    from topicloom import make_encryption_key

    typer.echo(make_encryption_key())


@app.command()
def encrypt(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Encrypt the whole folder with the first key that is set. Stop other processes before."""
    from topicloom import ConfigurationError, reencrypt
    from topicloom_app.cli.console import open_console
    from topicloom_app.cli.context import open_context
    from topicloom_app.cli.words import say

    opened, console = open_context(context.obj), open_console()
    if opened.keys is None:
        raise ConfigurationError(
            "no key is set: set TOPICLOOM_ENCRYPTION_KEY or TOPICLOOM_ENCRYPTION_KEY_FILE to one"
            " that `topicloom key new` prints"
        )
    if not yes and not typer.confirm(say("Encrypt everything in {folder}?", folder=opened.folder)):
        raise typer.Abort
    with opened.open_checkpoints() as saver, opened.open_store() as store:
        left = reencrypt(opened.storage, saver, store)
    for sentence in left:
        console.print(say(sentence), markup=False)
    count = len(opened.storage.sessions())
    console.print(say("{count} sessions are encrypted with this key", count=count), markup=False)
