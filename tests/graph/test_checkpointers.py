"""Every checkpointer that we hand out keeps LangGraph's contract, with and without encryption."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from postgres import open_postgres

from topicloom import EncryptionKeys, local_checkpointer, make_encryption_key, make_serializer
from topicloom.hosting import open_postgres_saver, open_postgres_store

Saver = BaseCheckpointSaver[Any]
Open = Callable[[EncryptionKeys | None, Path], AbstractAsyncContextManager[Saver]]


@asynccontextmanager
async def open_local(keys: EncryptionKeys | None, folder: Path) -> AsyncIterator[Saver]:
    saver = local_checkpointer(folder, keys=keys)
    yield saver
    saver.close()


@asynccontextmanager
async def open_async(keys: EncryptionKeys | None, folder: Path) -> AsyncIterator[Saver]:
    """The one of a LangGraph server."""
    async with aiosqlite.connect(folder / "c.sqlite") as connection:
        yield AsyncSqliteSaver(connection, serde=make_serializer(keys))


@asynccontextmanager
async def open_postgres_one(keys: EncryptionKeys | None, folder: Path) -> AsyncIterator[Saver]:
    with open_postgres() as uri:
        open_postgres_store(uri)
        async with open_postgres_saver(uri, keys) as saver:
            yield saver


@asynccontextmanager
async def open_memory(keys: EncryptionKeys | None, folder: Path) -> AsyncIterator[Saver]:
    yield InMemorySaver(serde=make_serializer(keys))


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize(
    "opened",
    [
        pytest.param(open_local, id="local"),
        pytest.param(open_async, id="async sqlite", marks=pytest.mark.slow),
        pytest.param(open_postgres_one, id="postgres", marks=pytest.mark.long),
        pytest.param(open_memory, id="memory"),
    ],
)
async def test_a_checkpointer_keeps_the_contract(
    opened: Open, encrypted: bool, tmp_path: Path
) -> None:
    keys = EncryptionKeys.of(make_encryption_key()) if encrypted else None
    places = iter(range(100))

    @checkpointer_test(name="ours")
    async def ours() -> AsyncIterator[Saver]:
        folder = tmp_path / str(next(places))
        folder.mkdir()
        async with opened(keys, folder) as saver:
            yield saver

    report = await validate(ours)
    failed = {n: r.failures for n, r in report.results.items() if r.passed is False}
    assert report.passed_all_base()
    assert not failed
