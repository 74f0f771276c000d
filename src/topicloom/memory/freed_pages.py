"""Files of SQLite are written anew: deleted rows stay in their free pages until then."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore

from topicloom.effects import Step, either
from topicloom.storage.protection import find_inner
from topicloom.texts import FilledText

if TYPE_CHECKING:
    from langgraph.store.sqlite import AsyncSqliteStore

_CHECKPOINTS = "free pages of the checkpoints' file, which another process uses"
_FACTS = "free pages of the facts' file, which another process uses"


def rewrite_files(*places: object) -> Step[tuple[str, ...]]:
    """Within a step: write the files of checkpointers and stores anew, as far as they have one.

    `PRAGMA secure_delete` would be faster, but leaves copies of rows that were moved within pages.

    Returns:
        What stays in a file for now, a sentence each: where another process is at it, and where a
        place that works on an event loop is asked without one.
    """
    left: tuple[str, ...] = ()
    for place in map(find_inner, places):
        left += yield from _rewrite_file(place)
    return left


def name_free_space(*places: object) -> tuple[str, ...]:
    """Those that are databases and free the space of deleted rows later, a sentence each."""
    from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore  # loaded late, as below

    files = SqliteSaver | AsyncSqliteSaver | SqliteStore | AsyncSqliteStore
    others = files | InMemorySaver | InMemoryStore | None
    return tuple(
        _name_tables(place) for place in map(find_inner, places) if not isinstance(place, others)
    )


def _rewrite_file(place: object) -> Step[tuple[str, ...]]:
    # Only here: it is not loaded with the package.
    from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

    busy = _CHECKPOINTS if isinstance(place, BaseCheckpointSaver) else _FACTS
    left = ""
    if isinstance(place, SqliteSaver | SqliteStore):
        with place.lock:
            left = _rewrite(place.conn, busy)
    elif isinstance(place, AsyncSqliteSaver | AsyncSqliteStore):
        later = partial(_name_tables, place)
        left = yield from either(later, partial(_arewrite, place, busy))
    return (left,) if left else ()


def _name_tables(place: object) -> str:
    return FilledText(
        "free space of {owner}'s tables, until their next VACUUM", owner=type(place).__name__
    )


def _rewrite(database: sqlite3.Connection, busy: str) -> str:
    """Write a database anew; returns "", or `busy` where another process is at it."""
    try:
        database.execute("VACUUM")
        held, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.OperationalError:
        return busy
    return busy if held else ""


async def _arewrite(place: AsyncSqliteSaver | AsyncSqliteStore, busy: str) -> str:
    async with place.lock:
        try:
            await place.conn.execute("VACUUM")
            [(held, *_)] = await place.conn.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError:
            return busy
    return busy if held else ""
