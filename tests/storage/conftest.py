"""The places that storage is tested on, behind one fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dict_storage import DictStorage, Tables
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from postgres import open_postgres

from topicloom import FileStorage, Storage, StoreStorage
from topicloom.storage.encrypted import EncryptedStorage
from topicloom.storage.encryption import EncryptionKeys, make_encryption_key

Reopen = Callable[[], Storage]
"""Opens one place again, as another process would: nothing remembered."""

SQLITE = pytest.param("sqlite", marks=pytest.mark.slow)
POSTGRES = pytest.param("postgres", marks=pytest.mark.long)


@pytest.fixture
def postgres_uri() -> Iterator[str]:
    """An empty database of a real PostgreSQL, set up for a store, and taken away afterwards."""
    from langgraph.store.postgres import PostgresStore

    with open_postgres() as uri:
        with PostgresStore.from_conn_string(uri) as store:
            store.setup()
        yield uri


@pytest.fixture
def postgres(postgres_uri: str) -> Iterator[BaseStore]:
    """A store on it."""
    from langgraph.store.postgres import PostgresStore

    with PostgresStore.from_conn_string(postgres_uri) as store:
        yield store


@pytest.fixture
def memory() -> BaseStore:
    """A store in memory."""
    return InMemoryStore()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[BaseStore]:
    """A store in a SQLite file."""
    with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
        store.conn.execute("PRAGMA synchronous = OFF")  # no test here pulls the plug
        store.setup()
        yield store


@pytest.fixture
def make_reopen(
    request: pytest.FixtureRequest, tmp_path: Path, memory: BaseStore
) -> Callable[[str], Reopen]:
    """Makes a place of its own, empty, of a kind of storage."""

    def make(kind: str) -> Reopen:
        if kind == "files":
            return lambda: FileStorage(tmp_path / "root", fsync=False)
        if kind == "dicts":
            tables: Tables = {}
            return lambda: DictStorage(tables)
        if kind == "encrypted":
            keys = EncryptionKeys.of(make_encryption_key())
            return lambda: EncryptedStorage(FileStorage(tmp_path / "root", fsync=False), keys)
        if kind == "encrypted items":
            keys = EncryptionKeys.of(make_encryption_key())
            return lambda: EncryptedStorage(StoreStorage(memory), keys)
        store: BaseStore = request.getfixturevalue(kind)
        return lambda: StoreStorage(store)

    return make


@pytest.fixture(
    params=["files", "memory", SQLITE, POSTGRES, "dicts", "encrypted", "encrypted items"]
)
def reopen(request: pytest.FixtureRequest, make_reopen: Callable[[str], Reopen]) -> Reopen:
    """A place of its own, empty, of each kind."""
    return make_reopen(request.param)
