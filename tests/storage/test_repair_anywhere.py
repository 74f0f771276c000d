"""Checking and repairing a session, on every storage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from agents import ScriptedModel, open_agent, remember
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import chatter, check_kept, open_graph, past, record, thread

from topicloom import (
    FileStorage,
    Storage,
    StorageError,
    check_session,
    open_session,
    repair_session,
)


def lose(storage: Storage, chain: str) -> None:
    """Take the newest entry of a chain away, behind the package's back."""
    rows = storage.backend("s").entries(chain)
    rows.replace([], [list(rows.scan())[-1].key])


@pytest.mark.parametrize("chain", ["turns", "ledger", "timeline", "roster", "topics/topic-t1"])
def test_what_the_transcript_tells_is_made_anew(
    reopen: Callable[[], Storage], tmp_path: Path, chain: str
) -> None:
    storage, saver = reopen(), InMemorySaver()
    graph = open_graph(tmp_path, storage=storage, checkpointer=saver)
    record(graph, thread(), *past("茶", "山", rounds=9))
    graph.invoke({"messages": [HumanMessage(chatter("茶", 9))]}, thread())
    session, store = open_session(graph, thread(), storage)
    said = [m.text for m in check_kept(store, session)]
    assert session.tail > 1
    assert check_session(graph, thread(), storage) == []
    lose(storage, chain)

    graph = open_graph(tmp_path, storage=reopen(), checkpointer=saver)
    faults = check_session(graph, thread(), reopen())
    assert [fault.place for fault in faults] == [chain]
    assert repair_session(graph, thread(), reopen()) == faults
    assert check_session(graph, thread(), reopen()) == []
    graph.invoke({"messages": [HumanMessage("好")]}, thread())
    session, store = open_session(graph, thread(), reopen())
    assert [m.text for m in check_kept(store, session)][: len(said)] == said


@pytest.mark.parametrize("chain", ["turns", "timeline", "roster"])
def test_so_it_is_for_an_agent(tmp_path: Path, chain: str) -> None:
    storage, saver = FileStorage(tmp_path), InMemorySaver()

    def say(number: int) -> None:
        said = {"messages": [HumanMessage(chatter("茶" if number < 8 else "雨", number))]}
        open_agent(ScriptedModel(), remember(tmp_path), checkpointer=saver).invoke(said, thread())

    for number in range(16):
        say(number)
    lose(storage, chain)
    agent = open_agent(ScriptedModel(), remember(tmp_path), checkpointer=saver)
    faults = check_session(agent, thread(), FileStorage(tmp_path))
    assert [fault.place for fault in faults] == [chain]
    assert repair_session(agent, thread(), FileStorage(tmp_path)) == faults
    assert check_session(agent, thread(), FileStorage(tmp_path)) == []
    say(16)
    session, store = open_session(agent, thread(), FileStorage(tmp_path))
    said = [m.text for m in check_kept(store, session) if m.role == "user"]
    assert said == [chatter("茶" if n < 8 else "雨", n) for n in range(17)]


def test_a_transcript_is_not_made_up(reopen: Callable[[], Storage], tmp_path: Path) -> None:
    storage, saver = reopen(), InMemorySaver()
    graph = open_graph(tmp_path, storage=storage, checkpointer=saver)
    record(graph, thread(), *past("茶", "山", rounds=9))
    lose(storage, "transcript")
    lose(storage, "roster")
    graph = open_graph(tmp_path, storage=reopen(), checkpointer=saver)
    places = {fault.place for fault in check_session(graph, thread(), reopen())}
    assert places == {"transcript", "roster"}
    with pytest.raises(StorageError, match="backup"):
        repair_session(graph, thread(), reopen())


def test_a_session_without_checkpoints(reopen: Callable[[], Storage], tmp_path: Path) -> None:
    storage = reopen()
    assert check_session(open_graph(tmp_path, storage=storage), thread(), storage) == []
    record(open_graph(tmp_path, storage=storage), thread(), *past("茶"))
    (fault,) = check_session(open_graph(tmp_path, storage=storage), thread(), storage)
    assert fault.place == "checkpoints"
    assert not fault.mend
