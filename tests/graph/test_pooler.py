"""Sessions in PostgreSQL behind PgBouncer, which gives each transaction another connection."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from postgres import open_postgres
from servers import free_port
from sessions import thread

from topicloom import Memory, Settings, StoreStorage, build_session_graph
from topicloom.hosting import open_postgres_saver, open_postgres_store

pytestmark = pytest.mark.slow
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
SETTINGS = """\
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
server_round_robin = 1
"""
USERS, TURNS = 6, 4


@contextmanager
def open_pooler(database: str) -> Iterator[str]:
    """The address of a database behind a pooler in transaction mode."""
    if not PGBOUNCER:
        pytest.skip("A POOLER IS NOT TESTED: install pgbouncer")
    address = urlsplit(database)
    (host,) = parse_qs(address.query)["host"]
    port, user = free_port(), address.username or "postgres"
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        settings = Path(folder, "pgbouncer.ini")
        settings.write_text(
            SETTINGS.format(host=host, port=address.port or 5432, user=user, listen=port), "utf-8"
        )
        as_another = ["-u", Path(host).owner()] if os.getuid() == 0 else []
        process = subprocess.Popen([PGBOUNCER, "-q", *as_another, str(settings)])
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if not probe.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.1)
            yield f"postgresql://{user}@127.0.0.1:{port}{address.path}"
        finally:
            process.terminate()
            process.wait(10)


async def test_sessions_go_on_where_each_transaction_has_another_connection() -> None:
    with open_postgres() as database, open_pooler(database) as pooled:
        # Two processes make the tables at once, and a third finds them made.
        with ThreadPoolExecutor(2) as both:
            stores = list(both.map(open_postgres_store, [pooled, pooled]))
        store = open_postgres_store(pooled)
        assert len(stores) == 2
        async with open_postgres_saver(pooled) as saver:
            graph = build_session_graph(
                settings=Settings(window=1_000), storage=StoreStorage(store)
            ).compile(checkpointer=saver)
            for turn in range(TURNS):
                for user in range(USERS):
                    said: Any = {"messages": [HumanMessage(f"User {user} says line {turn}.")]}
                    await graph.ainvoke(said, thread(f"user{user}"))
            for user in range(USERS):
                kept = await Memory.of(graph, thread(f"user{user}")).ahistory(limit=None)
                own = [m.text for m in kept if m.role == "user"]
                assert own == [f"User {user} says line {turn}." for turn in range(TURNS)]
        with psycopg.connect(database) as direct:
            # Those of other connections are not seen: that none is made is asked of each of three.
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            assert direct.execute(held).fetchone() == (0,)
        names = []
        for _ in range(6):
            with psycopg.connect(pooled, prepare_threshold=None, autocommit=True) as one:
                names += one.execute("SELECT name FROM pg_prepared_statements").fetchall()
        assert names == []
