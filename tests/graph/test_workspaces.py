"""What a process keeps of sessions, over a storage or over the graph's store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.store.memory import InMemoryStore

from topicloom import FileStorage, Storage
from topicloom.nodes.workspace import Workspaces


def open_one(storage: Storage | None) -> Workspaces:
    """Workspaces of which one is open at once, without indexes."""
    nothing: Any = None
    return Workspaces(storage, lambda _: nothing, open_at_once=1)


def test_a_store_has_one_storage_for_all_its_sessions() -> None:
    workspaces, stores = open_one(None), [InMemoryStore(), InMemoryStore()]
    logs = [workspaces.open(name, stores[0]).store.log for name in "aba"]
    assert logs[0] is logs[2]  # a storage of its own would have opened another
    assert workspaces.open("a", stores[1]).store.log.append("c", None, [{"text": "x"}])
    assert not logs[0].entries("c")


def test_what_another_purged_is_not_shown_after_a_session_made_room(tmp_path: Path) -> None:
    workspaces = open_one(FileStorage(tmp_path))
    log = workspaces.open("a").store.log
    head = log.append("c", None, [{"text": "x"}])
    refs = log.refs("c", head)
    assert log.read("c", refs)[0]["text"] == "x"
    workspaces.open("b")
    assert FileStorage(tmp_path).open("a").purge("c", refs) == 1
    [left] = workspaces.open("a").store.log.read("c", refs)
    assert "text" not in left
