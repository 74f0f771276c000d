"""The checkpoints beside the folder of sessions, which the command line goes on from."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver

from topicloom.errors import StorageUnavailableError
from topicloom.graph.keys import load_keys
from topicloom.settings import Settings
from topicloom.storage.disk import append_bytes, reachable
from topicloom.storage.files import FileStorage
from topicloom.storage.protection import make_serializer, protect_store

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, Op, Result

    from topicloom.storage.encryption import EncryptionKeys

CHECKPOINTS = "checkpoints.sqlite"
"""The file in the folder of sessions."""
_STORE = "store.sqlite"
"""The file there with facts, marks and leases."""
PATIENCE = 30.0
"""Seconds to wait for another process that writes."""
_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


class LocalCheckpointer(SqliteSaver):
    """Checkpoints in a file of SQLite, for `invoke` and `ainvoke` alike.

    Every method raises `StorageUnavailableError` where the file cannot be used.
    """

    def __init__(
        self, path: Path, *, reading: bool = False, keys: EncryptionKeys | None = None
    ) -> None:
        """Open a file as `open_database` does; it is closed with the last use of this."""
        super().__init__(open_database(path, reading=reading), serde=make_serializer(keys))
        self._path = path
        self.close = finalize(self, self.conn.close)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        with usable(self._path), super().cursor(transaction) as cursor:
            yield cursor

    async def aget_tuple(self, *args: Any, **options: Any) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, *args, **options)

    async def alist(self, *args: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in await asyncio.to_thread(lambda: list(self.list(*args, **options))):
            yield found

    async def aput(self, *args: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self.put, *args, **options)

    async def aput_writes(self, *args: Any, **options: Any) -> None:
        await asyncio.to_thread(self.put_writes, *args, **options)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)


def local_checkpointer(
    folder: Path | str | None = None, *, reading: bool = False, keys: EncryptionKeys | None = None
) -> LocalCheckpointer:
    """The checkpointer beside the sessions of a folder: what is said there survives a restart.

        graph = build_session_graph().compile(checkpointer=local_checkpointer())

    The command line has the same, so that `topicloom chat NAME` goes on with the thread `NAME`.
    For one machine; on many, LangGraph's `PostgresSaver` beside a store does the same.

    Args:
        folder: The folder of the sessions; that of the settings if not given.
        reading: True to read alone: nothing is made that is missing.
        keys: What they are encrypted with; the keys of the settings if not given.

    Raises:
        StorageUnavailableError: Its file cannot be used.
    """
    settings = Settings()
    path = FileStorage(folder or settings.folder).root / CHECKPOINTS
    return LocalCheckpointer(path, reading=reading, keys=keys or load_keys(settings))


def open_database(
    path: Path, factory: type[sqlite3.Connection] = sqlite3.Connection, *, reading: bool = False
) -> sqlite3.Connection:
    """Open a file of SQLite, or raise `StorageUnavailableError`.

    A missing one is made, for its owner alone. For `reading` it is not: an empty one in memory
    stands for it, and one that cannot be written is read as it is.
    """
    address = path.absolute().as_uri()
    with reachable(path.parent):
        if not path.exists():
            if reading:
                address = "file::memory:"
            else:
                # SQLite would let others read it; beside it, it does as with the file itself.
                append_bytes(path, b"", fsync=False)
    with usable(path):
        try:
            return _connect(address, factory)
        except sqlite3.OperationalError as error:
            # Without the files beside it, which nobody can make here, only so.
            if not reading or error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
                raise
            return _connect(f"{address}?immutable=1", factory)


def _connect(address: str, factory: type[sqlite3.Connection]) -> sqlite3.Connection:
    database = sqlite3.connect(
        address, timeout=PATIENCE, check_same_thread=False, factory=factory, uri=True
    )
    try:
        database.execute("PRAGMA schema_version")  # finds out a file that is no database
    except sqlite3.Error:
        database.close()
        raise
    return database


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Turn an error of SQLite about a file into one with a way out."""
    try:
        yield
    except sqlite3.Error as error:
        way = "end the program that holds it" if "locked" in str(error) else "give another folder"
        raise StorageUnavailableError(
            "cannot use {path}: {error}; {way}", path=path, error=error, way=way
        ) from error


class _StoreConnection(sqlite3.Connection):
    """A connection on which the set-up of a store is one transaction, and completes another's.

    As Python has it, `executescript` ends the transaction, and a set-up that was killed behind the
    adding of a column could never be done again.
    """

    def executescript(self, sql: str, /) -> sqlite3.Cursor:
        """Run a script of one statement."""
        try:
            return self.execute(sql)
        except sqlite3.OperationalError as error:
            if "duplicate column name" not in str(error):
                raise
            return self.cursor()


@contextmanager
def open_local_store(
    folder: Path, *, reading: bool = False, keys: EncryptionKeys | None = None
) -> Iterator[BaseStore]:
    """Open the store in a folder of sessions, with what reflection found and who is at work.

    It is for `invoke` and `ainvoke` alike. For `reading` nothing is made that is missing.

    Raises:
        StorageUnavailableError: The file cannot be used.
    """
    from langgraph.store.sqlite import SqliteStore  # only here: it is not loaded with the package

    class LocalStore(SqliteStore):
        """A store in a file of SQLite, for an event loop too: a LangGraph server asks it there."""

        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            return await asyncio.to_thread(self.batch, ops)

    path = folder / _STORE
    opened = open_database(path, _StoreConnection, reading=reading)
    with usable(path), closing(opened) as database:
        database.isolation_level = None  # the store begins and ends transactions itself
        store = LocalStore(database)
        with database:
            database.execute("BEGIN IMMEDIATE")
            store.setup()
        yield protect_store(store, keys)
