"""What a turn has to leave out of what it was just given is said: in a warning, in the receipt."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from langchain_core.messages import AIMessage, HumanMessage
from sessions import open_graph, thread

from topicloom import Memory, TopicLoomWarning
from topicloom.testing import Clock, ScriptedResponder, fake_roles, make_tool_call

VIDEO: dict[str, Any] = {
    "type": "video_url",
    "video_url": {"url": "data:video/mp4;base64," + base64.b64encode(bytes(9_000)).decode()},
}
UNKNOWN: dict[str, Any] = {"type": "hologram", "points": list(range(3_000))}
DOCUMENT: dict[str, Any] = {
    "type": "document",
    "source": {"type": "text", "data": "clause " * 9_000},
}


@pytest.mark.parametrize("kind", ["session", "agent"])
@pytest.mark.parametrize(
    ("block", "what"),
    [(UNKNOWN, "of m1 1 hologram"), (DOCUMENT, "a part of the text of m1")],
)
def test_of_the_users_message(tmp_path: Path, block: Any, what: str, kind: str) -> None:
    said = {"messages": [HumanMessage([{"type": "text", "text": "tea: look"}, block])]}
    graph: Any = open_graph(tmp_path)
    if kind == "agent":
        graph = open_agent(ScriptedModel(), remember(tmp_path))
    with pytest.warns(TopicLoomWarning, match=f"left out of the prompt: {what}"):
        graph.invoke(said, thread())
    (receipt,) = Memory.of(graph, thread()).receipts()
    assert receipt.events == (f"left out of the prompt: {what}",)


def test_media_of_any_kind_are_sent(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path, settings={"window": 1_200}))
    agent.invoke({"messages": [HumanMessage(["tea: look", VIDEO])]}, thread())
    assert VIDEO in model.prompts[-1][-1].content
    events = Memory.of(agent, thread()).receipts()[-1].events
    assert not [event for event in events if "left out" in event]


def test_of_what_a_tool_gave(tmp_path: Path) -> None:
    def read(query: str) -> str:
        """Read."""
        return "clause " * 9_000

    responder = ScriptedResponder(make_tool_call("read", {"query": "a"}), "Done.")
    graph = open_graph(tmp_path, fake_roles(responder), tools=[read])
    graph.invoke({"messages": [HumanMessage("tea: read")]}, thread())
    (receipt,) = Memory.of(graph, thread()).receipts()
    assert receipt.events == ("left out of the prompt: a part of the text of m3",)


def test_an_integer_in_a_reply_of_an_agents_model(tmp_path: Path) -> None:
    def book(n: Any) -> str:
        """Book."""
        return f"booked {n}"

    model = ScriptedModel(script=[call("book", n=10**25), "Done."])
    agent = open_agent(model, remember(tmp_path), tools=[book])
    for text in ("tea: book", "tea: and?"):
        agent.invoke({"messages": [HumanMessage(text)]}, thread())
    calls = [m for m in agent.get_state(thread()).values["messages"] if isinstance(m, AIMessage)]
    assert calls[0].tool_calls[0]["args"] == {"n": str(10**25)}


def test_a_turn_that_failed_goes_on_under_a_clock_without_a_zone(tmp_path: Path) -> None:
    class NaiveClock(Clock):
        def __call__(self) -> Any:
            return super().__call__().replace(tzinfo=None)

    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()
    failing = fake_roles(ScriptedResponder(ValueError("down")))
    graph = open_graph(tmp_path, failing, checkpointer=saver, reply_attempts=1)
    with pytest.raises(Exception, match="down"):
        graph.invoke({"messages": [HumanMessage("tea: hello")]}, thread())
    resumed = open_graph(tmp_path, checkpointer=saver, clock=NaiveClock())
    resumed.invoke(None, thread())
    assert [m.role for m in Memory.of(resumed, thread()).history(limit=None)][-1] == "assistant"
