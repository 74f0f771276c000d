"""Tools that the caller runs: a call ends the turn, and what came of it is the next one's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from sessions import chatter, check_kept, open_graph, prompt_of, tell, thread, transcript_of

from topicloom import FileStorage, SessionStore, TurnOptions, get_session
from topicloom.context.token_count import ToolLike
from topicloom.testing import ScriptedResponder, SteadyReader, fake_roles, make_tool_call

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: ToolLike = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather.", "parameters": PARAMETERS},
}
OPTIONS = TurnOptions.model_validate({"tools": [WEATHER]})


def test_a_call_ends_the_turn_and_its_result_is_answered(tmp_path: Path) -> None:
    call = make_tool_call("weather", {"city": "Oslo"})
    responder = ScriptedResponder(call, "Rain, then.")
    graph = open_graph(tmp_path, fake_roles(responder), window=32_000)
    asked = graph.invoke({"messages": [("user", "Weather?")]}, thread(), context=OPTIONS)
    assert [c["name"] for c in asked["messages"][-1].tool_calls] == ["weather"]
    assert [*responder.requests[0].callers_tools] == [WEATHER]

    result = ToolMessage("rain, 4°", tool_call_id="call-weather")
    answered = graph.invoke({"messages": [result]}, thread(), context=OPTIONS)
    assert answered["messages"][-1].content == "Rain, then."
    kinds = [type(m) for m in responder.requests[1].messages]
    assert kinds == [SystemMessage, HumanMessage, AIMessage, ToolMessage]
    assert responder.requests[1].query == "Weather?"
    said = [(m.role, m.text) for m in transcript_of(tmp_path, graph, thread())]
    assert said == [
        ("user", "Weather?"),
        ("assistant", ""),
        ("tool", "rain, 4°"),
        ("assistant", "Rain, then."),
    ]


def test_without_them_a_call_is_no_call(tmp_path: Path) -> None:
    responder = ScriptedResponder(make_tool_call("weather", {}, text="Let me see."))
    state: dict[str, Any] = open_graph(tmp_path, fake_roles(responder)).invoke(
        {"messages": [("user", "Weather?")]}, thread()
    )
    assert not state["messages"][-1].tool_calls


@pytest.mark.slow
def test_what_was_recalled_for_the_message_is_not_recalled_again(tmp_path: Path) -> None:
    reader, responder = SteadyReader(), ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder, reader=reader), window=8_000)
    tell(graph, thread(), *(chatter("茶", n) for n in range(8)), keep=2)
    responder.script.append(make_tool_call("weather", {"city": "茶"}))
    graph.invoke({"messages": [("user", "茶：天气?")]}, thread(), context=OPTIONS)
    read, noted = len(reader.requests), prompt_of(responder.requests[-1])
    assert read
    result = ToolMessage("晴", tool_call_id="call-weather")
    graph.invoke({"messages": [result]}, thread(), context=OPTIONS)
    assert len(reader.requests) == read
    # The prompt grew at its end: the note of the message stands where it stood.
    assert prompt_of(responder.requests[-1]).startswith(noted)
    session = get_session(graph, thread())
    check_kept(SessionStore(FileStorage(tmp_path, fsync=False).open("s")), session)


def test_an_answer_after_another_agent_handed_over(tmp_path: Path) -> None:
    responder = ScriptedResponder("Here I am.")
    graph = open_graph(tmp_path, fake_roles(responder))
    call = {"name": "transfer", "args": {}, "id": "t1"}
    handed = [
        HumanMessage("Who is there?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("Transferred.", tool_call_id="t1"),
    ]
    state = graph.invoke({"messages": handed}, thread())
    assert state["messages"][-1].content == "Here I am."
    assert responder.requests[0].query == "Who is there?"
