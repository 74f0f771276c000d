"""A model that calls tools, or searches, without end: each step costs as much as the one before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from examples import scaled
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphRecursionError
from payloads import build_payload
from sessions import thread

from topicloom import Memory
from topicloom.context.token_count import EstimatingCounter

COUNTER = EstimatingCounter("o200k")
STEPS = int(os.environ.get("TOPICLOOM_TEST_STEPS", scaled(300)))


def look(query: str) -> str:
    """Look."""
    return f"seen {query} " + "word " * 40


def size(prompt: list[BaseMessage]) -> int:
    return sum(map(COUNTER.message, prompt))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out of the prompt")
def test_an_agent_of_hundreds_of_steps(tmp_path: Path) -> None:
    script: list[Any] = [call("look", n, query=f"q{n}") for n in range(STEPS)]
    model = ScriptedModel(script=[*script, "Done."])
    agent = open_agent(model, remember(tmp_path, settings={"window": 3_000}), tools=[look])
    config: Any = {**thread(), "recursion_limit": 5_000}
    said = agent.invoke({"messages": [HumanMessage("tea: look at all of it")]}, config)["messages"]
    assert len([m for m in said if isinstance(m, ToolMessage)]) == STEPS, "the state stays whole"
    assert len(model.prompts) == STEPS + 1
    assert max(map(size, model.prompts)) <= 3_000
    for prompt in model.prompts[:: STEPS // 10]:
        build_payload("anthropic", prompt)
    agent.invoke({"messages": [HumanMessage("tea: and now?")]}, config)
    assert len(Memory.of(agent, thread()).history(limit=None)) == 2 * STEPS + 4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out of the prompt")
def test_a_model_that_searches_without_end(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path))
    for n in range(12):
        topic = ("tea", "boat")[n % 2]
        agent.invoke({"messages": [HumanMessage(f"{topic}: {n} " + "word " * 60)]}, thread())
    assert Memory.of(agent, thread()).topics()
    before = len(model.prompts)
    model.script[:] = [call("activate_topic", n, query="boat") for n in range(20)]
    with pytest.raises(GraphRecursionError):  # a model that calls what it is not offered any more
        agent.invoke({"messages": [HumanMessage("tea: and?")]}, {**thread(), "recursion_limit": 60})
    offered = ["activate_topic" in tools for tools in model.offered[before:]]
    assert offered[0]
    assert sum(offered) <= 3, "past the last round it has to answer"
    model.script[:] = []
    agent.invoke({"messages": [HumanMessage("tea: hello again")]}, thread())
    assert Memory.of(agent, thread()).history(limit=None)[-1].text == model.otherwise
