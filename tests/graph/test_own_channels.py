"""Channels of the application's own, which its input and its tools set."""

from __future__ import annotations

import asyncio
import operator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import ScriptedModel, call
from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from sessions import thread
from typing_extensions import TypedDict

from topicloom import Domain, InputError, Settings, TopicLoomWarning, build_session_graph
from topicloom.roles.responder import ChatResponder
from topicloom.testing import fake_roles


class Own(TypedDict, total=False):
    """What an application keeps beside the conversation."""

    mood: str
    seen: Annotated[list[str], operator.add]


def feel(mood: str, runtime: ToolRuntime) -> Command[Any]:
    """Notes how the user feels."""
    seen = [str(runtime.state.get("mood", ""))]
    said = ToolMessage("Noted.", tool_call_id=runtime.tool_call_id)
    return Command(update={"mood": mood, "seen": seen, "messages": [said]})


def heal(health: Any, runtime: ToolRuntime) -> Command[Any]:
    """Sets how healthy the hero is."""
    said = ToolMessage("Healed.", tool_call_id=runtime.tool_call_id)
    return Command(update={"document": {"health": health}, "messages": [said]})


def open_over(folder: Path, **options: Any) -> Any:
    model = ScriptedModel(script=[call("feel", mood="glad"), "Good."])
    settings = Settings.model_validate({"folder": folder, "fsync": False})
    builder = build_session_graph(model=model, settings=settings, tools=[feel], **options)
    return builder.compile(checkpointer=InMemorySaver())


def test_a_tool_sets_them(tmp_path: Path) -> None:
    graph = open_over(tmp_path, state_schema=Own)
    said = {"messages": [HumanMessage("I am glad.")], "mood": "sad"}
    state = graph.invoke(said, thread())
    assert (state["mood"], state["seen"]) == ("glad", ["sad"])
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert "mood" in graph.get_input_jsonschema()["properties"]
    assert graph.invoke({"messages": [HumanMessage("Bye.")]}, thread())["mood"] == "glad"


@pytest.mark.parametrize("form", ["sync", "async"])
async def test_what_has_no_channel_is_warned_of(tmp_path: Path, form: str) -> None:
    graph = open_over(tmp_path)
    said = {"messages": [HumanMessage("I am glad.")]}
    run: Any = partial(asyncio.to_thread, graph.invoke) if form == "sync" else graph.ainvoke
    with pytest.warns(TopicLoomWarning, match="'feel' sets 'mood'"):
        await run(said, thread())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sync", "async"])
async def test_a_document_that_a_tool_sets_is_checked(tmp_path: Path, form: str) -> None:
    """It was stored, and the next message was refused for it and lost."""
    schema = {"properties": {"health": {"type": "integer"}}}
    model = ScriptedModel(
        script=[call("heal", health=7), "Healed.", call("heal", health="much"), "Bye."]
    )
    builder = build_session_graph(
        roles=fake_roles(responder=ChatResponder(model)),
        settings=Settings(folder=tmp_path, fsync=False),
        tools=[heal],
        domain=Domain(schema=schema),
    )
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    run: Any = partial(asyncio.to_thread, graph.invoke) if form == "sync" else graph.ainvoke
    state = await run({"messages": [("user", "Heal me.")], "document": {"health": 1}}, thread())
    assert state["document"] == {"health": 7}
    with pytest.raises(
        InputError, match=r"'heal' sets a document that cannot be used: .*health: 'much'"
    ):
        await run({"messages": [("user", "Again.")]}, thread())
    state = await run({"messages": [("user", "Goodbye.")]}, thread())
    assert (state["messages"][-1].content, state["document"]) == ("Bye.", {"health": 7})
