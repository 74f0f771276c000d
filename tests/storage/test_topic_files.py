"""Copies of topics for people: written with their topics, never read, gone with what is purged."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from sessions import check_kept, open_graph, past, record, tell, thread

from topicloom import FileStorage, Memory
from topicloom.memory.stored import Graph, get_session, open_session

CONFIG = thread()


def talk(folder: Path, **options: Any) -> Graph:
    """Tea and rain in topics of their own."""
    storage = FileStorage(folder, fsync=False, **options)
    graph = open_graph(folder, storage=storage, checkpointer=InMemorySaver())
    record(graph, CONFIG, *past("茶", "雨", rounds=3))
    tell(graph, CONFIG, "Hello", keep=0)
    return graph


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of each file of a topic, by its path."""
    root = folder / "s" / "topics"
    paths = [p for p in root.rglob("*") if p.is_file()]
    return {
        p.relative_to(root).as_posix(): [json.loads(line) for line in p.read_bytes().splitlines()]
        for p in paths
    }


def check(folder: Path, graph: Graph) -> None:
    """The files show the topics as they are, word for word, and no other file is there."""
    session, store = open_session(graph, CONFIG)
    check_kept(store, session)
    shown = {}
    for topic in store.topic_table(session):
        if topic.count:
            place = f"archived/{topic.archived}/" if topic.status == "archived" else ""
            head = topic.model_dump(include={"id", "name", "status", "brief", "summary"})
            said = [(m.id, m.text) for m in store.topic_messages(session, topic)]
            shown[f"{place}topic-{topic.id}.jsonl"] = head, said
    found = {
        path: (rows[0], [(row["id"], row["text"]) for row in rows[1:]])
        for path, rows in read(folder).items()
    }
    assert found == shown


@pytest.mark.slow
def test_a_split_writes_them_and_a_turn_does_not(tmp_path: Path) -> None:
    graph = talk(tmp_path)
    check(tmp_path, graph)
    assert len(read(tmp_path)) >= 2
    rmtree(tmp_path / "s" / "topics")
    tell(graph, CONFIG, "And you?")
    assert read(tmp_path) == {}, "nothing of a topic changed"


@pytest.mark.slow
def test_changes_by_hand_show_in_them(tmp_path: Path) -> None:
    graph = talk(tmp_path)
    memory = Memory.of(graph, CONFIG)
    memory.rename("t1", "Green tea")
    check(tmp_path, graph)
    memory.archive("t2")
    assert any(path.startswith("archived/20") for path in read(tmp_path))
    check(tmp_path, graph)
    memory.restore("t2")
    check(tmp_path, graph)
    memory.merge("t1", "t2")
    check(tmp_path, graph)
    assert "topic-t1.jsonl" not in read(tmp_path)
    memory.undo()
    check(tmp_path, graph)


@pytest.mark.slow
def test_what_people_do_to_them_damages_nothing(tmp_path: Path) -> None:
    graph = talk(tmp_path)
    session, store = open_session(graph, CONFIG)
    before = check_kept(store, session)
    one, other = sorted((tmp_path / "s" / "topics").iterdir())[:2]
    one.write_text("not even JSON")
    other.unlink()
    saver = graph.checkpointer
    assert isinstance(saver, BaseCheckpointSaver)
    graph = open_graph(tmp_path, storage=FileStorage(tmp_path, fsync=False), checkpointer=saver)
    tell(graph, CONFIG, "茶：and tea?")
    session, store = open_session(graph, CONFIG)
    assert check_kept(store, session)[: len(before)] == before
    Memory.of(graph, CONFIG).rename("t1", "Tea again")
    Memory.of(graph, CONFIG).rename("t2", "Rain again")
    check(tmp_path, graph)


@pytest.mark.slow
def test_a_purge_leaves_none_of_the_bytes(tmp_path: Path) -> None:
    graph = talk(tmp_path)
    gone = "茶的第2次"
    files = [p for p in (tmp_path / "s").rglob("*") if p.is_file()]
    holding = {p.parent.name for p in files if gone.encode() in p.read_bytes()}
    assert holding == {"s", "topics"}
    (tmp_path / "s/topics/topic-t1.jsonl.new").write_text(f"a crash left {gone} here")
    memory = Memory.of(graph, CONFIG)
    memory.forget(*[m.id for m in memory.history(limit=None) if gone in m.text])
    assert not [
        p for p in (tmp_path / "s").rglob("*") if p.is_file() and gone.encode() in p.read_bytes()
    ]
    check(tmp_path, graph)


@pytest.mark.slow
def test_they_show_the_branch_that_was_written_last(tmp_path: Path) -> None:
    graph = talk(tmp_path)
    before = graph.get_state(CONFIG).config
    Memory.of(graph, CONFIG).rename("t1", "Later")
    check(tmp_path, graph)
    graph.invoke({"messages": [HumanMessage("雨：from here")]}, before)
    assert get_session(graph, CONFIG).branch
    check(tmp_path, graph)


@pytest.mark.parametrize("wanted", [False, True])
def test_a_storage_may_have_none(tmp_path: Path, *, wanted: bool) -> None:
    talk(tmp_path, topic_files=wanted)
    assert (tmp_path / "s" / "topics").exists() == wanted


def test_a_place_that_cannot_be_written_costs_no_turn(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "topics").write_text("a file of somebody")
    graph = talk(tmp_path)
    session, store = open_session(graph, CONFIG)
    assert check_kept(store, session)
    assert (tmp_path / "s" / "topics").read_text() == "a file of somebody"
