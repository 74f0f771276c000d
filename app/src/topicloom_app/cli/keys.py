"""`topicloom key ...`: the key that what is stored is encrypted with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from topicloom import EncryptionKeys, Storage
    from topicloom_app.cli.context import CliContext

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
    """Encrypt the folder, or TOPICLOOM_POSTGRES, with the first key. Stop other processes first."""
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
    place = "PostgreSQL" if opened.settings.postgres else opened.folder
    if not yes and not typer.confirm(say("Encrypt everything in {folder}?", folder=place)):
        raise typer.Abort
    with _open_places(opened, opened.keys) as (storage, saver, store):
        left = reencrypt(storage, saver, store)
        count = len(storage.sessions())
    for sentence in left:
        console.print(say(sentence), markup=False)
    console.print(say("{count} sessions are encrypted with this key", count=count), markup=False)


@contextmanager
def _open_places(
    context: CliContext, keys: EncryptionKeys
) -> Iterator[tuple[Storage, Any, BaseStore]]:
    """Sessions, their checkpoints and facts: of the folder, or of the database if one is set."""
    if not (url := context.settings.postgres):
        with context.open_checkpoints() as saver, context.open_store() as store:
            yield context.storage, saver, store
        return
    from topicloom import EncryptedStorage, EncryptedStore, StoreStorage, make_serializer
    from topicloom.hosting import open_postgres_store

    plain = open_postgres_store(url)
    from langgraph.checkpoint.postgres import PostgresSaver  # it is there: the store is open

    with PostgresSaver.from_conn_string(url) as saver:
        saver.serde = make_serializer(keys)
        yield EncryptedStorage(StoreStorage(plain), keys), saver, EncryptedStore(plain, keys)
