"""Writing everything anew with the newest key: for the first one, and for every one after it."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore, PutOp

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.memory.freed_pages import name_free_space, rewrite_files
from topicloom.storage.base import (
    CHANGES,
    EDITS,
    LEDGER,
    RANGES,
    ROSTER,
    SUPERSEDED,
    TIPS,
    TRANSCRIPT,
    TURNS,
    Storage,
)
from topicloom.storage.encrypted import EncryptedBackend, EncryptedStorage
from topicloom.storage.encrypted_store import EncryptedStore
from topicloom.storage.log import PURGES
from topicloom.storage.store_items import PREFIX, items_in, label
from topicloom.storage.stores import SESSIONS, VECTORS
from topicloom.texts import FilledText

CHAINS = (TRANSCRIPT, SUPERSEDED, CHANGES, RANGES, ROSTER, LEDGER, TURNS, EDITS, TIPS, PURGES)
"""All chains of a session."""
_PAGE = 200


def _reencrypt(
    storage: Storage,
    checkpointer: BaseCheckpointSaver[str] | None = None,
    store: BaseStore | None = None,
) -> Step[tuple[str, ...]]:
    """Write everything anew with the key that writes, also what was not encrypted before.

    Call it while no turn runs. Killed on the way, the same call finishes; until then keep all keys.

    Args:
        storage: The sessions: an `EncryptedStorage`.
        checkpointer: Their checkpoints, with a serializer of the same keys.
        store: Facts, marks and leases: an `EncryptedStore`.

    Returns:
        What is not written anew, or may still be found, a sentence each; empty for nothing.

    Raises:
        InputError: The storage or the store does not encrypt.
        EncryptionError: Something is encrypted with a key that is not given.
        SessionBusyError: Another process holds a session.
    """
    if not isinstance(storage, EncryptedStorage):
        raise InputError("the storage does not encrypt: give an EncryptedStorage")
    for name in storage.sessions():
        with storage.lock(name):
            _reencrypt_session(
                EncryptedBackend(storage.inner.backend(name), storage.keys, plain=True)
            )
    left = _reencrypt_checkpoints(checkpointer) if checkpointer is not None else ""
    if store is not None:
        if not isinstance(store, EncryptedStore):
            raise InputError("the store does not encrypt: give an EncryptedStore")
        _reencrypt_items(store.with_plain(), {label(name) for name in storage.sessions()})
    pages = yield from rewrite_files(checkpointer, store)
    return tuple(filter(None, (left, *pages, *name_free_space(checkpointer, store))))


reencrypt, areencrypt = both(_reencrypt)


def _reencrypt_session(backend: EncryptedBackend) -> None:
    with backend.lock(create=False):
        for chain in CHAINS:
            rows = backend.entries(chain)
            rows.replace([raw for raw in rows.scan() if raw.body])
            backend.sweep(chain, torn=True)
        for space in backend.spaces():
            for batch in space.scan():
                if batch.rows:
                    space.replace([batch])
                else:
                    space.replace([], [batch.key])
        if backend.inner.topic_files is not None:
            backend.inner.topic_files.remove()
        backend.mark()  # last: until then the old key is asked for


def _reencrypt_items(store: EncryptedStore, sessions: Container[str]) -> None:
    """Write items anew, but not rows of sessions in the same store: these have their own keys."""
    rows = {label(chain) for chain in CHAINS}
    for namespace in _list_namespaces(store):
        _, owner, *rest = (*namespace, "")
        own = owner in sessions and (rest[0] in rows or rest[0].startswith(VECTORS))
        if own or namespace[:2] == SESSIONS:
            continue
        puts = [PutOp(namespace, item.key, item.value) for item in items_in(store, namespace)]
        store.batch(puts)


def _list_namespaces(store: BaseStore) -> list[tuple[str, ...]]:
    found, offset = list[tuple[str, ...]](), 0
    while page := store.list_namespaces(prefix=(PREFIX,), limit=_PAGE, offset=offset):
        found += page
        offset += _PAGE
    return found


def _reencrypt_checkpoints(saver: BaseCheckpointSaver[str]) -> str:
    """Write checkpoints anew, row by row, so that it may be killed; returns what is left."""
    if isinstance(saver, SqliteSaver):
        saver.setup()
        with saver.cursor() as cursor:
            for names in (("checkpoints", "checkpoint"), ("writes", "value")):
                _reencrypt_table(cursor, saver.serde, *names, row="rowid", mark="?")
    elif (opened := _open_postgres(saver)) is not None:
        with opened as cursor:
            for table in ("checkpoint_blobs", "checkpoint_writes"):
                _reencrypt_table(cursor, saver.serde, table, "blob", row="ctid", mark="%s")
    else:
        return FilledText(
            "checkpoints of {saver} stay as they are: call it again with SqliteSaver or"
            " PostgresSaver over the same database, or keep the older keys as long as these",
            saver=type(saver).__name__,
        )
    return ""


def _open_postgres(saver: object) -> AbstractContextManager[Any] | None:
    """A cursor on the database of a `PostgresSaver`; None for another one."""
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import tuple_row
        from psycopg_pool import ConnectionPool
    except ImportError:
        return None

    @contextmanager
    def open_cursor(found: PostgresSaver) -> Iterator[Any]:
        given = found.conn
        held = given.connection() if isinstance(given, ConnectionPool) else nullcontext(given)
        with held as connection, connection.cursor(row_factory=tuple_row) as cursor:
            yield cursor

    return open_cursor(saver) if isinstance(saver, PostgresSaver) else None


def _reencrypt_table(
    cursor: Any, serde: SerializerProtocol, table: str, column: str, *, row: str, mark: str
) -> None:
    """Write a column anew; `row` names a row there, and `mark` stands for a parameter."""
    this = f"WHERE {row} = {mark}"
    cursor.execute(f"SELECT {row} FROM {table} WHERE {column} IS NOT NULL")
    for ids in cursor.fetchall():
        cursor.execute(f"SELECT type, {column} FROM {table} {this}", ids)
        new = serde.dumps_typed(serde.loads_typed(cursor.fetchone()))
        cursor.execute(f"UPDATE {table} SET type = {mark}, {column} = {mark} {this}", (*new, *ids))
