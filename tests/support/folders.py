"""People whose threads, checkpoints and facts are in files of one folder, for several processes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore
from people import People

from topicloom.graph.checkpoints import CHECKPOINTS, LocalCheckpointer


def open_people(folder: Path) -> People:
    """The people of a folder, as `topicloom chat` has them."""
    folder.mkdir(exist_ok=True)
    opened = sqlite3.connect(
        folder / "store.sqlite", check_same_thread=False, isolation_level=None, timeout=60
    )
    store = SqliteStore(opened)
    store.setup()
    saver = LocalCheckpointer(folder / CHECKPOINTS)
    return People(
        folder,
        store=store,
        checkpointer=saver,
        settings={"embedder": "hashing", "across_threads": "all"},
    )


def close_files(people: People) -> None:
    """Close the files of people, as the end of their process does."""
    for place in (people.store, people.checkpointer):
        assert isinstance(place, SqliteStore | SqliteSaver)
        place.conn.close()
