"""Checking and repairing a session, on every storage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from agents import ScriptedModel, open_agent, remember
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import chatter, check_kept, open_graph, past, record, tell, thread

from topicloom import (
    FileStorage,
    Memory,
    Storage,
    StorageError,
    TopicLoomWarning,
    check_session,
    open_session,
    repair_session,
)
from topicloom.hosting import Graph, get_text

TOLD = [get_text(m) for m in past("茶")]


def remembered(graph: Graph) -> list[str]:
    return [m.text for m in Memory.of(graph, thread()).history(limit=None)]


def lose(storage: Storage, chain: str) -> None:
    """Take the newest entry of a chain away, behind the package's back."""
    rows = storage.backend("s").entries(chain)
    rows.replace([], [list(rows.scan())[-1].key])


@pytest.mark.slow
@pytest.mark.parametrize("chain", ["turns", "ledger", "ranges", "roster"])
def test_what_the_transcript_tells_is_made_anew(
    reopen: Callable[[], Storage], tmp_path: Path, chain: str
) -> None:
    storage, saver = reopen(), InMemorySaver()
    graph = open_graph(tmp_path, storage=storage, checkpointer=saver)
    record(graph, thread(), *past("茶", "山", rounds=3))
    tell(graph, thread(), chatter("茶", 9), keep=0)
    session, store = open_session(graph, thread())
    said = [m.text for m in check_kept(store, session)]
    assert session.tail > 1
    assert check_session(graph, thread()) == []
    lose(storage, chain)

    graph = open_graph(tmp_path, storage=reopen(), checkpointer=saver)
    faults = check_session(graph, thread())
    assert [fault.place for fault in faults] == [chain]
    assert repair_session(graph, thread()) == faults
    assert check_session(graph, thread()) == []
    graph.invoke({"messages": [HumanMessage("好")]}, thread())
    session, store = open_session(graph, thread())
    assert [m.text for m in check_kept(store, session)][: len(said)] == said


@pytest.mark.slow
def test_so_it_is_for_an_agent(tmp_path: Path) -> None:
    saver, told = InMemorySaver(), [chatter("茶" if n < 8 else "雨", n) for n in range(19)]

    def say(*numbers: int) -> None:
        agent = open_agent(ScriptedModel(), remember(tmp_path), checkpointer=saver)
        for number in numbers:
            agent.invoke({"messages": [HumanMessage(told[number])]}, thread())

    say(*range(16))
    for number, chain in enumerate(["turns", "ranges", "roster"], start=16):
        lose(FileStorage(tmp_path), chain)
        agent = open_agent(ScriptedModel(), remember(tmp_path), checkpointer=saver)
        faults = check_session(agent, thread())
        assert [fault.place for fault in faults] == [chain]
        assert repair_session(agent, thread()) == faults
        assert check_session(agent, thread()) == []
        say(number)
        session, store = open_session(agent, thread())
        said = [m.text for m in check_kept(store, session) if m.role == "user"]
        assert said == told[: number + 1]


@pytest.mark.slow
def test_a_transcript_is_not_made_up(reopen: Callable[[], Storage], tmp_path: Path) -> None:
    storage, saver = reopen(), InMemorySaver()
    graph = open_graph(tmp_path, storage=storage, checkpointer=saver)
    record(graph, thread(), *past("茶", "山", rounds=9))
    lose(storage, "transcript")
    lose(storage, "roster")
    graph = open_graph(tmp_path, storage=reopen(), checkpointer=saver)
    places = {fault.place for fault in check_session(graph, thread())}
    assert places == {"transcript", "roster"}
    with pytest.raises(StorageError, match="backup"):
        repair_session(graph, thread())


def test_a_session_without_checkpoints(reopen: Callable[[], Storage], tmp_path: Path) -> None:
    storage = reopen()
    assert check_session(open_graph(tmp_path, storage=storage), thread()) == []
    record(open_graph(tmp_path, storage=storage), thread(), *past("茶"))
    graph = open_graph(tmp_path, storage=storage)
    (fault,) = check_session(graph, thread())
    assert fault.place == "checkpoints"
    assert repair_session(graph, thread()) == [fault]
    assert check_session(graph, thread()) == []
    assert [m.text for m in graph.get_state(thread()).values["messages"]] == TOLD[-4:]
    tell(graph, thread(), "雨。")
    assert remembered(graph) == [*TOLD, "雨。", "All right, noted."]
    assert Memory.of(graph, thread()).receipts()[-1].events == ()


@pytest.mark.slow
def test_a_conversation_that_began_anew_and_the_one_before(
    reopen: Callable[[], Storage], tmp_path: Path
) -> None:
    record(open_graph(tmp_path, storage=reopen()), thread(), *past("茶"))
    for text in ("雨。", "山。"):  # its checkpoints are lost twice
        saver = InMemorySaver()
        graph = open_graph(tmp_path, storage=reopen(), checkpointer=saver)
        with pytest.warns(TopicLoomWarning, match="begins anew"):
            tell(graph, thread(), text)
    assert remembered(graph) == ["山。", "All right, noted."]
    assert check_session(graph, thread()) == []
    saver.delete_thread("s")
    repair_session(graph, thread())
    told = [text for text in remembered(graph) if text != "All right, noted."]
    assert sorted(told) == sorted([*TOLD, "雨。", "山。"])
    tell(graph, thread(), "海。")
    assert remembered(graph)[-2:] == ["海。", "All right, noted."]
    assert check_session(graph, thread()) == []


def test_an_agent_without_checkpoints(tmp_path: Path) -> None:
    """Its state has all messages: what of them is gone, nobody can put back."""
    said = {"messages": [HumanMessage("茶。")]}
    open_agent(ScriptedModel(), remember(tmp_path)).invoke(said, thread())
    (fault,) = check_session(open_agent(ScriptedModel(), remember(tmp_path)), thread())
    assert (fault.place, fault.mend) == ("checkpoints", "")
