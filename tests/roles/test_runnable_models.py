"""Models that are no chat models by type, but made of one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call
from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Reply
from openai_server import OpenAIServer
from sessions import past, record, thread

from topicloom import Settings, build_session_graph
from topicloom.hosting import get_text


def open_over(folder: Path, model: Any, **options: Any) -> Any:
    given = {"folder": folder, "window": 2_000, "recall_tokens": 500, "fsync": False}
    settings = Settings.model_validate(given)
    builder = build_session_graph(model=model, settings=settings, **options)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["bound", "configured"])
async def test_what_is_bound_is_sent(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    openai_server.otherwise(Reply("Oak it is."))
    config: RunnableConfig = thread()
    model: Any = init_chat_model("openai:gpt-4o-mini").bind(temperature=0.5)
    if how == "configured":
        model = init_chat_model(configurable_fields=("model", "model_provider", "temperature"))
        chosen = {"model": "gpt-4o-mini", "model_provider": "openai", "temperature": 0.5}
        config = {"configurable": {**config["configurable"], **chosen}}
    graph = open_over(tmp_path, model)
    record(graph, config, *past("茶", "雨", rounds=8))
    said = {"messages": [HumanMessage("茶呢？")]}
    events = [e async for e in graph.astream_events(said, config, version="v2")]
    kinds = Counter(e["event"] for e in events)
    streamed = [e for e in events if e["event"] == "on_chat_model_stream"]
    assert "".join(e["data"]["chunk"].text for e in streamed) == "Oak it is."
    assert kinds["on_chat_model_start"] == 1
    assert {r["model"] for r in openai_server.requests} == {"gpt-4o-mini"}
    assert {r["temperature"] for r in openai_server.requests} == {0.5}
    assert any("tools" in r for r in openai_server.requests)
    again = {"messages": [HumanMessage("雨呢？")]}
    assert get_text(graph.invoke(again, config)["messages"][-1]) == "Oak it is."


def test_tools_of_a_bound_model_are_called(tmp_path: Path) -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}，晴。"

    model = ScriptedModel(script=[call("weather", city="罗马"), "晴。"])
    graph = open_over(tmp_path, model.bind(stop=["x"]), tools=[weather])
    state = graph.invoke({"messages": [HumanMessage("罗马？")]}, thread())
    assert [get_text(m) for m in state["messages"]] == ["罗马？", "", "罗马，晴。", "晴。"]
