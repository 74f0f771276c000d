"""A thread of a user: whoever else comes to it, by any door, is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, open_agent, remember
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from sessions import open_graph, tell, thread

from topicloom import FileStorage, Memory, OtherPersonError, TurnOptions, get_session
from topicloom.hosting import Graph, name_thread

ANN, BOB = name_thread("s", "ann", "work"), name_thread("s", "bob", "work")
SAID: Any = {"messages": [HumanMessage("茶：一")]}


def enter_by_stream(graph: Graph, config: RunnableConfig) -> object:
    return list(graph.stream(SAID, config))


def enter_beside_the_loop(graph: Graph, config: RunnableConfig) -> object:
    return asyncio.run(graph.ainvoke(SAID, config))


def enter_by_context(graph: Graph, config: RunnableConfig) -> object:
    options = TurnOptions(user_id=config["configurable"]["user_id"], scope="work")
    return graph.invoke(SAID, thread(), context=options)


def fork(graph: Graph, config: RunnableConfig) -> object:
    oldest = [state.config for state in graph.get_state_history(thread())][-2]
    person = {key: config["configurable"][key] for key in ("user_id", "scope")}
    return graph.invoke(SAID, {"configurable": {**oldest["configurable"], **person}})


def change(graph: Graph, config: RunnableConfig) -> object:
    return graph.update_state(config, SAID, as_node="finalize")


DOORS: list[Callable[[Graph, RunnableConfig], object]] = [
    lambda graph, config: graph.invoke(SAID, config),
    enter_by_stream,
    enter_beside_the_loop,
    enter_by_context,
    fork,
    change,
    lambda graph, config: graph.get_state(config),
    lambda graph, config: list(graph.get_state_history(config)),
    lambda graph, config: Memory.of(graph, config).history(),
    lambda graph, config: Memory.of(graph, config).search("茶"),
]


@pytest.mark.parametrize("door", DOORS)
def test_every_door_is_closed_to_others(
    tmp_path: Path, door: Callable[[Graph, RunnableConfig], object]
) -> None:
    graph = open_graph(tmp_path)
    tell(graph, ANN, "茶：零", "茶：又")
    with pytest.raises(OtherPersonError):
        door(graph, BOB)
    state = graph.get_state(thread())
    assert len(state.values["messages"]) == get_session(graph, thread()).count == 4
    assert not state.next, "nothing was kept of it"
    door(graph, ANN)


def test_a_storage_is_asked_for_somebody(tmp_path: Path) -> None:
    tell(open_graph(tmp_path), ANN, "茶：零")
    storage = FileStorage(tmp_path)
    assert Memory(storage, "s").session().user_id == "ann"
    assert Memory(storage, "s", user_id="ann", scope="work").session().scope == "work"
    with pytest.raises(OtherPersonError):
        Memory(storage, "s", user_id="bob").session()


def test_checkpoints_that_are_lost_do_not_open_it(tmp_path: Path) -> None:
    """What is stored says whose it is as well."""
    tell(open_graph(tmp_path), ANN, "茶：零")
    with pytest.raises(OtherPersonError):
        tell(open_graph(tmp_path, checkpointer=InMemorySaver()), BOB, "茶：零")


def test_a_turn_that_names_nobody_goes_on(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    tell(graph, thread(), "茶：零")
    tell(graph, ANN, "茶：一")
    tell(graph, thread(), "茶：二")
    session = get_session(graph, thread())
    assert (session.user_id, session.scope, session.count) == ("ann", "work", 6)


def test_without_a_user_nothing_is_kept_of_one(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    tell(graph, thread(), "茶：零")
    kept = graph.get_state(thread()).values["session"]
    assert not {"user_id", "scope", "facts_at"} & set(kept)


def test_an_agent_has_a_user_too(tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    agent.invoke(SAID, ANN)
    with pytest.raises(OtherPersonError):
        agent.invoke({"messages": [HumanMessage("茶：二")]}, BOB)
    with pytest.raises(OtherPersonError):
        Memory.of(agent, BOB).history()
    assert Memory.of(agent, ANN).session().user_id == "ann"
