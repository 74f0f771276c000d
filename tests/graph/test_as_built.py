"""Reviews, purges and repairs of a graph go by what the graph was built with."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from reviewed import Merger, Reviewer
from sessions import check_kept, past, record, thread

from topicloom import (
    MERGER,
    REVIEWER,
    FileStorage,
    InputError,
    Memory,
    SessionState,
    Settings,
    TurnOptions,
    areview_session,
    build_session_graph,
    check_session,
    open_roles,
    open_session,
    repair_session,
    review_session,
)
from topicloom.hosting import Graph
from topicloom.testing import fake_roles


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What settings say by themselves is another folder, and another encoder."""
    monkeypatch.setenv("TOPICLOOM_FOLDER", str(tmp_path / "elsewhere"))


def talk(folder: Path, *, reviewer: Any = None, **options: Any) -> Graph:
    """A graph with everything of its own, in which two topics were talked about."""
    roles = fake_roles().replace(REVIEWER, reviewer or Reviewer()).replace(MERGER, Merger())
    given = {"storage": FileStorage(folder / "own", fsync=False), "roles": roles, **options}
    graph = build_session_graph(embedder="hashing", **given).compile(
        checkpointer=InMemorySaver(), store=InMemoryStore()
    )
    record(graph, thread(), *past("茶", "雨"))
    graph.invoke({"messages": [("user", "好")]}, thread(), context=TurnOptions(keep_messages=2))
    return graph


def vectors_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("vectors-*"))


@pytest.mark.slow
def test_a_review_is_told_nothing_again(tmp_path: Path) -> None:
    reviewer = Reviewer()
    graph = talk(tmp_path, reviewer=reviewer)
    before = vectors_of(tmp_path)
    report = asyncio.run(areview_session(graph, thread(), dry_run=True))
    assert report.changes
    assert report.troubles == ()
    assert review_session(graph, thread()).changed == tuple(c.topic for c in report.changes)
    assert reviewer.requests
    assert review_session(graph, thread()).changes == ()
    assert vectors_of(tmp_path) == before
    assert not (tmp_path / "elsewhere").exists()


def test_a_review_of_the_graphs_store(tmp_path: Path) -> None:
    assert review_session(talk(tmp_path, storage="store"), thread()).changed


@pytest.mark.slow
def test_what_is_given_goes_before(tmp_path: Path) -> None:
    built, given = Reviewer(), Reviewer()
    graph = talk(tmp_path, reviewer=built)
    roles = fake_roles().replace(REVIEWER, given)
    assert review_session(graph, thread(), dry_run=True, roles=roles).changes
    assert given.requests
    assert not built.requests
    named = open_roles(
        settings=Settings(cheap_model="openai:none", base_url="http://127.0.0.1:9/v1", api_key="-")
    )
    report = review_session(graph, thread(), dry_run=True, roles=named)
    assert {call.model for call in report.calls if call.failure} == {"none"}
    assert not built.requests


def test_a_review_reads_nothing_that_another_writer_purged(tmp_path: Path) -> None:
    reviewer = Reviewer()
    graph = talk(tmp_path, reviewer=reviewer)
    review_session(graph, thread(), dry_run=True)
    reviewer.requests.clear()
    other = FileStorage(tmp_path / "own", fsync=False)
    session, store = open_session(graph, thread())
    said = store.messages(session)[0].text
    Memory(other, session.id).forget("m1")
    review_session(graph, thread(), dry_run=True)
    assert reviewer.requests
    assert said not in [m.text for request in reviewer.requests for m in request.messages]


def test_a_graph_that_is_no_session_graph_is_refused(tmp_path: Path) -> None:
    around = StateGraph(SessionState, TurnOptions)
    around.add_node("talk", build_session_graph(roles=fake_roles()).compile())
    around.add_edge(START, "talk")
    with pytest.raises(InputError, match="no session graph"):
        review_session(around.compile(checkpointer=InMemorySaver()), thread("new"))


def test_purged_checked_and_repaired_where_it_is(tmp_path: Path) -> None:
    graph = talk(tmp_path)
    session, store = open_session(graph, thread())
    assert check_kept(store, session)
    assert Memory.of(graph, thread()).forget("m1").messages
    assert check_session(graph, thread()) == []
    rows = FileStorage(tmp_path / "own").backend("s").entries("turns")
    rows.replace([], [list(rows.scan())[-1].key])
    faults = check_session(graph, thread())
    assert [fault.place for fault in faults] == ["turns"]
    assert repair_session(graph, thread()) == faults
    assert check_session(graph, thread()) == []
