"""The graph as a LangGraph server takes it: compiled, without checkpointer or store.

The server brings its own checkpointer and store, or opens those below: then it deletes sessions
with their threads, and replies know what reflection found. Settings come from `TOPICLOOM_*`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiosqlite
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore

from topicloom.graph.checkpoints import CHECKPOINTS, PATIENCE, open_local_store
from topicloom.graph.keys import load_keys
from topicloom.graph.session import build_session_graph
from topicloom.memory.background import run_background
from topicloom.memory.purge import delete_with_threads
from topicloom.settings import Settings
from topicloom.storage.disk import append_bytes
from topicloom.storage.files import FileStorage
from topicloom.storage.protection import find_inner, make_serializer
from topicloom.storage.stores import StoreStorage

_settings = Settings()
_postgres = _settings.postgres


def _open_shared(url: str) -> BaseStore:
    from topicloom.graph.postgres import open_postgres_store

    return open_postgres_store(url, load_keys(_settings))


_shared = _open_shared(_postgres) if _postgres else None
_keys = load_keys(_settings)
_storage = StoreStorage(find_inner(_shared)) if _shared else FileStorage(_settings.folder)
_builder = build_session_graph(settings=_settings, storage=_storage)
graph = _builder.compile()


@asynccontextmanager
async def open_checkpointer() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    """Open the checkpoints beside the sessions, which go with their sessions.

    Those of a folder are the command line's, which shows what was said over the server. While they
    are open, sessions that are due are reviewed and reflected upon.
    """
    async with _open_saver() as saver, open_store() as store:
        own = _builder.compile(checkpointer=saver, store=store)
        async with run_background(own, checkpointer=saver, store=store):
            yield delete_with_threads(saver, own)


@asynccontextmanager
async def open_store() -> AsyncIterator[BaseStore]:
    """Open the store of facts, marks and leases: the command line's, or that of the database."""
    if _shared is not None:
        yield _shared
        return
    with open_local_store(FileStorage(_settings.folder).root, keys=_keys) as store:
        yield store


@asynccontextmanager
async def _open_saver() -> AsyncIterator[BaseCheckpointSaver[Any]]:
    if _postgres:
        from topicloom.graph.postgres import open_postgres_saver

        async with open_postgres_saver(_postgres, _keys) as shared:
            yield shared
        return
    path = FileStorage(_settings.folder).root / CHECKPOINTS
    append_bytes(path, b"", fsync=False)  # its owner's alone
    async with aiosqlite.connect(path, timeout=PATIENCE) as connection:
        yield AsyncSqliteSaver(connection, serde=make_serializer(_keys))
