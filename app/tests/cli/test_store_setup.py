"""The store of facts is set up whole or not at all."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from faults.short import run_short
from langgraph.store.sqlite import SqliteStore

from topicloom import Settings
from topicloom_app.cli.context import make_context


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
def test_killed_at_any_step_it_is_completed_by_the_next() -> None:
    (figures,) = run_short("crowd", "--on", "files", "--only", "setup").values()
    assert figures["kills"] == figures["cases"] >= 10


def test_one_that_an_older_version_left_half_made_is_completed(tmp_path: Path) -> None:
    for done in range(len(SqliteStore.MIGRATIONS)):
        folder = tmp_path / str(done)
        folder.mkdir()
        database = sqlite3.connect(folder / "store.sqlite")
        database.execute("CREATE TABLE store_migrations (v INTEGER PRIMARY KEY)")
        for version, script in enumerate(SqliteStore.MIGRATIONS[: done + 1]):
            database.execute(script)
            if version < done:
                database.execute("INSERT INTO store_migrations VALUES (?)", (version,))
        database.commit()
        database.close()
        with make_context(folder, Settings()).open_store() as store:
            store.put(("a",), "b", {"c": 1})
            assert [item.value for item in store.search(("a",))] == [{"c": 1}]
