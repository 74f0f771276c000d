"""Sessions and checkpoints in PostgreSQL, for as many processes and machines as share it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import finalize

from langgraph.store.base import BaseStore

from topicloom.errors import ConfigurationError
from topicloom.extras import name_install
from topicloom.storage.protection import make_serializer, protect_store

try:
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import PostgresStore
    from psycopg import AsyncConnection, Connection, Error
    from psycopg.rows import DictRow, dict_row
    from psycopg_pool import AsyncConnectionPool, ConnectionPool
except ImportError as error:
    raise ConfigurationError(
        "PostgreSQL needs a package that is missing ({package}): {install}",
        package=error.name,
        install=name_install("postgres"),
    ) from error

if TYPE_CHECKING:
    from topicloom.storage.encryption import EncryptionKeys

_OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
"""No statement is prepared by a name: behind a pooler in transaction mode another connection of the
server would not know it."""
_CONNECTIONS = 8
"""Connections at most of a process for sessions, and as many for checkpoints."""
_SETUP = 0x746F706963
"""Names the lock that whoever makes the tables holds."""


def open_postgres_store(url: str, keys: EncryptionKeys | None = None) -> BaseStore:
    """A store of sessions in a database, whose tables are made if they are not there.

    It may be used from all threads, and is closed with the last use of it. With keys, it encrypts.

    Raises:
        ConfigurationError: The database cannot be used.
    """
    _make_tables(url)
    pool = ConnectionPool[Connection[DictRow]](
        url,
        min_size=1,
        max_size=_CONNECTIONS,
        kwargs=_OPTIONS,
        open=True,
        # Behind a restart of the database, each connection that was open would fail a turn.
        check=ConnectionPool.check_connection,
    )
    store = PostgresStore(pool)
    finalize(store, pool.close)
    return protect_store(store, keys)


@asynccontextmanager
async def open_postgres_saver(
    url: str, keys: EncryptionKeys | None = None
) -> AsyncIterator[AsyncPostgresSaver]:
    """Open the checkpoints in a database, whose tables `open_postgres_store` has made.

    With keys, they are encrypted.
    """
    async with AsyncConnectionPool[AsyncConnection[DictRow]](
        url,
        min_size=1,
        max_size=_CONNECTIONS,
        kwargs=_OPTIONS,
        open=False,
        check=AsyncConnectionPool.check_connection,
    ) as pool:
        yield AsyncPostgresSaver(pool, serde=make_serializer(keys))


def _make_tables(url: str) -> None:
    try:
        with Connection.connect(url, **_OPTIONS) as guard:
            while not _make_tables_alone(guard, url):
                time.sleep(0.1)
    except Error as error:
        raise ConfigurationError("PostgreSQL cannot be used: {error}", error=error) from error


def _make_tables_alone(guard: Connection[DictRow], url: str) -> bool:
    """Make the tables while `guard` holds the lock; false if another process holds it.

    The lock is of a transaction: behind a pooler, one of a connection would outlive its process.
    It is tried, not waited for: an index that is made waits for all who wait.
    """
    with guard.transaction():
        if not _ask(guard, f"SELECT pg_try_advisory_xact_lock({_SETUP}) AS got")["got"]:
            return False
        with Connection.connect(url, **_OPTIONS) as connection:
            PostgresSaver(connection).setup()
            PostgresStore(connection).setup()
        return True


def _ask(connection: Connection[DictRow], query: str) -> DictRow:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row
