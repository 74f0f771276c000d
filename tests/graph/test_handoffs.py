"""A session graph as one of several agents: it answers what another one hands over to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, remember
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm
from sessions import thread

from topicloom import Memory, Settings, TopicLoomWarning, build_session_graph
from topicloom.hosting import get_text


def build(folder: Path, model: ScriptedModel, **options: Any) -> Any:
    settings = Settings.model_validate({"folder": folder, "fsync": False})
    return build_session_graph(model=model, settings=settings, **options)


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")
def test_under_a_supervisor(tmp_path: Path) -> None:
    inner = ScriptedModel(otherwise="You love oak.")
    outer = ScriptedModel(script=[call("transfer_to_memory"), "Oak, it says."])
    memory = build(tmp_path, inner).compile(name="memory")
    graph = create_supervisor([memory], model=outer).compile(checkpointer=InMemorySaver())
    state = graph.invoke({"messages": [HumanMessage("What do I love? I love oak.")]}, thread())
    assert "What do I love? I love oak." in get_text(inner.prompts[0][1])
    assert "You love oak." in [get_text(m) for m in state["messages"]]
    assert get_text(state["messages"][-1]) == "Oak, it says."


def test_in_a_swarm_to_it_and_away(tmp_path: Path) -> None:
    inner = ScriptedModel(otherwise="You love oak.")
    bob = create_agent(
        ScriptedModel(script=[call("transfer_to_memory")], otherwise="Bob here."),
        [create_handoff_tool(agent_name="memory")],
        name="bob",
    )
    away = create_handoff_tool(agent_name="bob")
    memory = build(tmp_path, inner, tools=[away]).compile(name="memory", checkpointer=True)
    swarm = create_swarm([memory, bob], default_active_agent="bob")
    graph = swarm.compile(checkpointer=InMemorySaver())

    def say(text: str) -> Any:
        return graph.invoke({"messages": [HumanMessage(text)]}, thread())

    state = say("I love oak. What do I love?")
    assert state["active_agent"] == "memory"
    assert get_text(state["messages"][-1]) == "You love oak."
    inner.script = [call("transfer_to_bob")]
    state = say("Bob, please.")
    assert (state["active_agent"], get_text(state["messages"][-1])) == ("bob", "Bob here.")


@pytest.mark.parametrize("how", ["graph", "agent"])
def test_a_part_that_nothing_is_kept_of_is_warned_of(tmp_path: Path, how: str) -> None:
    model = ScriptedModel()
    part = build(tmp_path, model).compile()
    kept = build(tmp_path, model).compile(checkpointer=True)
    if how == "agent":
        part, kept = (
            create_agent(model, middleware=[remember(tmp_path)], checkpointer=checkpointer)
            for checkpointer in (None, True)
        )
    said: Any = {"messages": [HumanMessage("And now?")]}
    for inner in (kept, part):
        around = StateGraph(MessagesState)
        around.add_node("part", inner)
        around.add_edge(START, "part")
        graph: Any = around.compile(checkpointer=InMemorySaver())
        graph.invoke({"messages": [HumanMessage("I love oak.")]}, thread())
        if inner is kept:
            graph.invoke(said, thread())
    with pytest.warns(TopicLoomWarning, match="checkpointer=True"):
        graph.invoke(said, thread())


@pytest.mark.parametrize("how", ["graph", "agent", "function"])
def test_the_memory_of_a_part_is_found_by_the_graph_around_it(tmp_path: Path, how: str) -> None:
    model = ScriptedModel()
    part: Any = build(tmp_path, model).compile(checkpointer=True)
    if how == "agent":
        part = create_agent(model, middleware=[remember(tmp_path)], checkpointer=True)

    def call_part(state: MessagesState) -> Any:
        return part.invoke({"messages": state["messages"][-1:]})

    around = StateGraph(MessagesState)
    around.add_node("memory", call_part if how == "function" else part)
    around.add_edge(START, "memory")
    graph: Any = around.compile(checkpointer=InMemorySaver())
    graph.invoke({"messages": [HumanMessage("I love oak.")]}, thread())
    for known in (graph, part):
        memory = Memory.of(known, thread())
        assert memory.history()[0].text == "I love oak."
        assert memory.search("oak", limit=1)[0].message.id == "m1"
    Memory.of(graph, thread()).forget("m1")
    assert "oak" not in Memory.of(graph, thread()).history()[0].text
    graph.invoke({"messages": [HumanMessage("And now?")]}, thread())
    assert "I love oak." not in str(model.prompts[-1])


@pytest.mark.slow
def test_a_graph_around_that_removes_messages_sends_no_old_ones_as_new(tmp_path: Path) -> None:
    part = build(tmp_path, model := ScriptedModel()).compile(checkpointer=True)
    around = StateGraph(MessagesState)
    around.add_node("memory", part)
    around.add_edge(START, "memory")
    graph: Any = around.compile(checkpointer=InMemorySaver())
    for n in range(15):
        shown = graph.invoke({"messages": [HumanMessage(f"茶{n}")]}, thread())["messages"]
    graph.update_state(thread(), {"messages": [RemoveMessage(m.id) for m in shown[10:14]]})
    graph.invoke({"messages": [HumanMessage("雨")]}, thread())
    said = [get_text(m).split("\n")[-1] for m in model.prompts[-1]]
    assert [text for text in said if text[0] in "茶雨"] == [*(f"茶{n}" for n in range(15)), "雨"]
