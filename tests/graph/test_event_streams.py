"""What event streams and tracers are told of a turn: each call of a model once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ag_ui.core import RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Reply, Usage
from openai_server import OpenAIServer
from sessions import open_graph, past, record, thread

from topicloom import Settings, build_session_graph
from topicloom.hosting import Graph
from topicloom.testing import ScriptedResponder, fake_roles

ANSWER = "Oak it is, then."


@pytest.fixture
def graph(tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A session with topics, whose roles answer what cannot be used, twice each."""
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    openai_server.otherwise(Reply(ANSWER, usage=Usage(100, 10)))
    settings = Settings.model_validate(
        {"folder": tmp_path, "window": 2_000, "recall_tokens": 500, "fsync": False}
    )
    built = build_session_graph(model="openai:gpt-5-mini", settings=settings)
    graph = built.compile(checkpointer=InMemorySaver())
    record(graph, thread(), *past("茶", "雨", rounds=8))
    return graph


async def events_of(graph: Graph, config: RunnableConfig) -> list[Any]:
    said = {"messages": [("user", "茶呢？")]}
    return [e async for e in graph.astream_events(said, config, version="v2")]


@pytest.mark.slow
async def test_each_token_is_there_once(graph: Graph) -> None:
    events = await events_of(graph, thread())
    streamed = [e for e in events if e["event"] == "on_chat_model_stream"]
    assert "".join(e["data"]["chunk"].text for e in streamed) == ANSWER
    (begun,) = (e for e in events if e["event"] == "on_chat_model_start")
    (ended,) = (e for e in events if e["event"] == "on_chat_model_end")
    (prompt,) = begun["data"]["input"]["messages"]
    assert "茶呢？\n" in prompt[-1].content
    assert begun["metadata"]["ls_model_name"] == "gpt-5-mini"
    assert begun["metadata"]["topicloom_session"] == "s"
    assert ended["data"]["output"].usage_metadata["input_tokens"] == 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_the_newest_form_of_event_streams_has_the_reply_once_too(graph: Graph) -> None:
    said = {"messages": [("user", "茶呢？")]}
    run = await graph.astream_events(said, thread(), version="v3")
    assert [await message.text async for message in run.messages] == [ANSWER]
    assert ((await run.output()) or {})["messages"][-1].text == ANSWER
    state = await graph.ainvoke({"messages": [("user", "雨呢？")]}, thread())
    assert [m.text for m in state["messages"][-4:]] == ["茶呢？", ANSWER, "雨呢？", ANSWER]


def test_no_reply_comes_from_langchains_cache(tmp_path: Path) -> None:
    responder = ScriptedResponder("一", "二")
    graph = open_graph(tmp_path, fake_roles(responder))
    set_llm_cache(InMemoryCache())
    try:
        for name, reply in (("one", "一"), ("two", "二")):
            state = graph.invoke({"messages": [("user", "雨")]}, thread(name))
            assert state["messages"][-1].content == reply
    finally:
        set_llm_cache(None)


@pytest.mark.slow
async def test_roles_are_there_for_whoever_asks(graph: Graph) -> None:
    asked: RunnableConfig = {**thread(), "metadata": {"topicloom_roles": True}}
    begun = [e for e in await events_of(graph, asked) if e["event"] == "on_chat_model_start"]
    roles = Counter(e["metadata"]["topicloom_role"] for e in begun)
    assert roles["responder"] == 1
    assert roles["reader"] >= 2
    assert {e["metadata"].get("topicloom_topic") for e in begun} >= {"t1", "t2"}


class _Tracer(BaseCallbackHandler):
    """Writes down the calls of models."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None]] = []

    def on_chat_model_start(self, *args: Any, metadata: Any = None, **kwargs: Any) -> None:
        self.seen.append((metadata["topicloom_role"], metadata.get("topicloom_topic")))


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_tracers_see_every_call_once(graph: Graph, streamed: bool) -> None:
    tracer, usage = _Tracer(), UsageMetadataCallbackHandler()
    config: RunnableConfig = {**thread(), "callbacks": [tracer, usage]}
    said = {"messages": [("user", "茶呢？")]}
    if streamed:
        list(graph.stream(said, config, stream_mode="messages"))
    else:
        graph.invoke(said, config)
    assert Counter(role for role, _ in tracer.seen)["responder"] == 1
    assert {("reader", "t1"), ("reader", "t2")} <= set(tracer.seen)
    (spent,) = usage.usage_metadata.values()
    assert spent["input_tokens"] == 100 * len(tracer.seen)
    reply = graph.get_state(thread()).values["messages"][-1]
    assert reply.usage_metadata["input_tokens"] == 100
    assert reply.response_metadata["turn_usage"]["input_tokens"] == spent["input_tokens"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`get_config_jsonschema`")
async def test_a_front_end_over_ag_ui_gets_the_reply_once(graph: Graph) -> None:
    agent = LangGraphAgent(name="topicloom", graph=graph)
    asked = UserMessage(id="u1", role="user", content="茶呢？")
    given = RunAgentInput(
        thread_id="s", run_id=str(uuid4()), state={}, messages=[asked], tools=[], context=[],
        forwarded_props={},
    )  # fmt: skip
    events = [e async for e in agent.run(given)]
    kinds = Counter(str(e.type.value) for e in events)
    assert kinds["RUN_ERROR"] == 0
    texts = [e.delta for e in events if e.type.value == "TEXT_MESSAGE_CONTENT"]
    assert "".join(texts) == ANSWER
    assert kinds["TEXT_MESSAGE_START"] == 1
