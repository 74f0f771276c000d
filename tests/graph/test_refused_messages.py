"""A message that cannot be taken in is refused, and the session goes on as if it never came."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from examples import scaled
from hypothesis import HealthCheck, given, settings, strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from sessions import open_graph, tell, thread

from topicloom import (
    InputError,
    Memory,
    ReplyError,
    TopicLoomWarning,
    check_session,
)
from topicloom.hosting import Graph
from topicloom.testing import ScriptedResponder, fake_roles, make_tool_call

REPLY = "All right, noted."
KINDS = [["x"], {"a": 1}, ("x",)]


def bad(kind: object = ["x"]) -> HumanMessage:
    return HumanMessage([{"type": kind}, {"type": "text", "text": "hi"}])


def remembered(graph: Graph) -> list[str]:
    return [m.text for m in Memory.of(graph, thread()).history(limit=None)]


def shown(graph: Graph) -> list[str]:
    return [m.text for m in graph.get_state(thread()).values["messages"]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("durability", ["async", "exit"])
async def test_nothing_of_it_stays(tmp_path: Path, kind: object, durability: Any) -> None:
    graph = open_graph(tmp_path)
    for given_ in ([bad(kind)], [bad(kind), HumanMessage("Hello")], bad(kind)):
        with pytest.raises(InputError, match=r"block 1 .*a type is a text"):
            graph.invoke({"messages": given_}, thread(), durability=durability)
        with pytest.raises(InputError, match="a type is a text"):
            await graph.ainvoke({"messages": given_}, thread(), durability=durability)
    assert not graph.get_state(thread()).values.get("messages")
    tell(graph, thread(), "Hello")
    with pytest.raises(InputError, match="a type is a text"):
        graph.invoke({"messages": [bad(kind)]}, thread(), durability=durability)
    assert shown(graph) == ["Hello", REPLY]
    tell(graph, thread(), "And now?")
    assert remembered(graph) == ["Hello", REPLY, "And now?", REPLY]
    assert check_session(graph, thread()) == []


async def test_an_update_of_the_state(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    tell(graph, thread(), "Hello")
    with pytest.raises(InputError, match=r"\['x'\]"):
        graph.update_state(thread(), {"messages": [bad()]})
    with pytest.raises(InputError, match=r"\['x'\]"):
        await graph.aupdate_state(thread(), {"messages": bad()})
    with pytest.raises(InputError, match=r"\['x'\]"):
        graph.invoke(Command(update={"messages": [bad()]}), thread())
    graph.update_state(thread(), {"messages": [("user", "By the way")]})
    tell(graph, thread(), "And now?")
    assert remembered(graph) == ["Hello", REPLY, "By the way", "And now?", REPLY]


def refuse(folder: Path, first: bool) -> tuple[Any, list[str]]:
    """An agent that refused a message, its first one or not, and what was said before."""
    agent = open_agent(ScriptedModel(), remember(folder))
    if not first:
        agent.invoke({"messages": [HumanMessage("Hello")]}, thread())
    with pytest.raises(InputError, match=r"\['x'\]"):
        agent.invoke({"messages": [bad()]}, thread())
    return agent, [] if first else ["Hello", REPLY]


@pytest.mark.parametrize("first", [True, False])
async def test_an_agent_keeps_it_no_longer_than_its_own_turn(tmp_path: Path, first: bool) -> None:
    agent, said = refuse(tmp_path, first)
    with pytest.raises(InputError, match=r"\['x'\]"):
        await agent.ainvoke({"messages": [bad()]}, thread())
    with pytest.warns(TopicLoomWarning, match="left out of the session"):
        agent.invoke({"messages": [HumanMessage("And now?")]}, thread())
    assert remembered(agent) == shown(agent) == [*said, "And now?", REPLY]
    agent.invoke({"messages": [HumanMessage("And then?")]}, thread())
    assert shown(agent)[-2:] == ["And then?", REPLY]


def test_a_graph_around_it_keeps_what_it_was_given(tmp_path: Path) -> None:
    around = StateGraph(MessagesState)
    around.add_node("talk", open_graph(tmp_path).builder.compile(checkpointer=True))
    around.add_edge(START, "talk")
    graph = around.compile(checkpointer=InMemorySaver())
    graph.invoke({"messages": [HumanMessage("Hello")]}, thread())
    with pytest.raises(InputError, match=r"\['x'\]"):
        graph.invoke({"messages": [bad()]}, thread())
    with pytest.warns(TopicLoomWarning, match="left out of the session"):
        graph.invoke({"messages": [HumanMessage("And now?")]}, thread())
    assert [m.text for m in graph.get_state(thread()).values["messages"]][-1] == REPLY


@pytest.mark.slow
def test_a_tool_that_gives_one(tmp_path: Path) -> None:
    def give(query: str) -> Any:
        """Give a message."""
        return Command(
            update={"messages": [ToolMessage([{"type": ["x"]}], tool_call_id="call-give")]}
        )

    call = make_tool_call("give", {"query": "a"})
    responder = ScriptedResponder("Hi", call, "Done")
    graph = open_graph(tmp_path, fake_roles(responder), tools=[give])
    tell(graph, thread(), "Hello")
    with pytest.raises(InputError, match=r"tool 'give' .*\['x'\]"):
        tell(graph, thread(), "Look it up")
    tell(graph, thread(), "And now?")
    assert remembered(graph)[:3] == ["Hello", "Hi", "Look it up"]
    assert "And now?" in remembered(graph)


@tool(response_format="content_and_artifact")
def measure(query: str) -> tuple[str, Any]:
    """Measure."""
    return "half \ud83d", threading.Lock()


@tool
def hand_over(query: str) -> Any:
    """Hand over."""
    said = ToolMessage(
        [{"type": "n", "n": 2**70, "b": b"abc"}], tool_call_id="call-hand_over-1", artifact=object()
    )
    return Command(update={"messages": [said]})


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_what_a_tool_of_an_agent_gives(tmp_path: Path, asynchronous: bool) -> None:
    """It is made fit at the tool: the checkpoint behind its step would fail."""
    model = ScriptedModel(script=[call("measure", query="a"), call("hand_over", query="a"), "Done"])
    tools = [measure, hand_over]
    with SqliteSaver.from_conn_string(":memory:") as saver:
        kept = InMemorySaver() if asynchronous else saver
        agent = open_agent(model, remember(tmp_path), tools=tools, checkpointer=kept)
        given = {"messages": [HumanMessage("Look")]}
        if asynchronous:
            await agent.ainvoke(given, thread(), durability="sync")
        else:
            agent.invoke(given, thread(), durability="sync")
        results = [m for m in agent.get_state(thread()).values["messages"] if m.type == "tool"]
        assert results[0].content == "half \ufffd"
        assert results[1].content == [{"type": "n", "n": str(2**70), "b": "YWJj"}]
        assert [m.artifact for m in results] == [None, None]
        agent.invoke({"messages": [HumanMessage("And \ud83d now?")]}, thread())
        agent.invoke({"messages": [HumanMessage("And then?")]}, thread())
        assert shown(agent)[-5:] == ["Done", "And \ufffd now?", REPLY, "And then?", REPLY]


def test_a_tool_of_an_agent_that_gives_one(tmp_path: Path) -> None:
    @tool
    def give(query: str) -> Any:
        """Give a message."""
        said = ToolMessage([{"type": ["x"]}], tool_call_id="call-give-1")
        return Command(update={"messages": [said]})

    model = ScriptedModel(script=[call("give", query="a")])
    agent = open_agent(model, remember(tmp_path), tools=[give])
    with pytest.raises(InputError, match=r"tool 'give' .*\['x'\]"):
        agent.invoke({"messages": [HumanMessage("Look it up")]}, thread())
    agent.invoke({"messages": [HumanMessage("And now?")]}, thread())
    assert remembered(agent)[0] == "Look it up"
    assert remembered(agent)[-2:] == ["And now?", REPLY]


def test_a_model_that_replies_one(tmp_path: Path) -> None:
    responder = ScriptedResponder("Hi", [AIMessageChunk(content=[{"type": {"a": 1}}])], "Done")
    graph = open_graph(tmp_path, fake_roles(responder), reply_attempts=1)
    tell(graph, thread(), "Hello")
    with pytest.raises(ReplyError, match="a type is a text"):
        tell(graph, thread(), "And now?")
    tell(graph, thread(), "And then?")
    assert remembered(graph) == ["Hello", "Hi", "And now?", "And then?", "Done"]


SCALARS = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["text", "image", "x", ""])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "text", "image_url", "url", "data"]), inner, max_size=3
        )
    ),
    max_leaves=5,
)
KEYS = [
    "type",
    "text",
    "refusal",
    "image_url",
    "source_type",
    "source",
    "data",
    "id",
    "reasoning",
    "file",
]
BLOCKS = st.lists(
    st.text("ab \n", max_size=3) | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
    max_size=3,
)


@pytest.mark.slow
@settings(
    max_examples=scaled(80),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(content=BLOCKS, role=st.sampled_from([HumanMessage, AIMessage]))
def test_whatever_blocks_come_the_session_goes_on(
    tmp_path_factory: pytest.TempPathFactory, content: list[Any], role: type[Any]
) -> None:
    graph = open_graph(tmp_path_factory.mktemp("drawn"))
    tell(graph, thread(), "Hello")
    try:
        graph.invoke({"messages": [role(content)]}, thread())
    except InputError:
        assert shown(graph) == ["Hello", REPLY]
    tell(graph, thread(), "And now?")
    tell(graph, thread(), "And then?", keep=0)
    assert remembered(graph)[-4:] == ["And now?", REPLY, "And then?", REPLY]
    assert check_session(graph, thread()) == []
