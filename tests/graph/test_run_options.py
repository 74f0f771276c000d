"""Models and window that a run's context asks for, as an assistant of a server does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Reply
from openai_server import OpenAIServer
from sessions import check_kept, kept, last_receipt, past, record, thread

from topicloom import (
    ConfigurationError,
    Domain,
    Settings,
    TurnOptions,
    build_session_graph,
    get_session,
)
from topicloom.hosting import Graph


@pytest.fixture
def graph(tmp_path: Path, openai_server: OpenAIServer) -> Graph:
    openai_server.otherwise(Reply("好。"))
    given = {"folder": tmp_path, "window": 8_000, "recall_tokens": 500, "fsync": False}
    settings = Settings.model_validate(given | {"base_url": openai_server.base_url})
    built = build_session_graph(model="openai:strong", settings=settings)
    graph = built.compile(checkpointer=InMemorySaver())
    record(graph, thread(), *past("茶", "雨", rounds=8))
    return graph


def ask(graph: Graph, **context: Any) -> None:
    said: Any = {"messages": [("user", "茶呢？")]}
    graph.invoke(said, thread(), context=cast("TurnOptions", context))


@pytest.mark.slow
def test_each_run_has_its_own(tmp_path: Path, graph: Graph, openai_server: OpenAIServer) -> None:
    ask(graph)
    assert {r["model"] for r in openai_server.requests} == {"strong"}
    assert get_session(graph, thread()).topics == 0
    openai_server.requests.clear()
    told = {"model": "openai:other", "cheap_model": "openai:cheap", "instructions": "Be brief."}
    ask(graph, window=1_000, **told)
    assert {r["model"] for r in openai_server.requests} == {"other", "cheap"}
    replies = [r for r in openai_server.requests if r.get("stream")]
    assert "Be brief." in str(replies[-1]["messages"][0])
    receipt = last_receipt(tmp_path, graph, thread())
    assert (receipt.window, receipt.view > 1) == (1_000, True)
    ask(graph)
    assert last_receipt(tmp_path, graph, thread()).window == 8_000
    assert openai_server.requests[-1]["model"] == "strong"
    session = get_session(graph, thread())
    assert len(check_kept(kept(tmp_path, session), session)) == 38


@pytest.mark.slow
async def test_on_an_event_loop(graph: Graph, openai_server: OpenAIServer) -> None:
    said = {"messages": [("user", "茶呢？")]}
    context: Any = {"model": "openai:other"}
    await graph.ainvoke(said, thread(), context=context)
    assert openai_server.requests[-1]["model"] == "other"


def test_a_model_that_nobody_can_open_is_named(graph: Graph) -> None:
    with pytest.raises(ConfigurationError, match="'other'"):
        ask(graph, model="other")


@pytest.mark.slow
def test_with_a_domain(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Reply("Good."))
    given = {"folder": tmp_path, "base_url": openai_server.base_url}
    built = build_session_graph(settings=Settings.model_validate(given), domain=Domain())
    graph = built.compile(checkpointer=InMemorySaver())
    document = {"characters": [{"id": "lin", "name": "Lin"}]}
    said: Any = {"messages": [("user", "Hello")], "document": document}
    graph.invoke(said, thread(), context={"model": "openai:other"})
    assert openai_server.requests[-1]["model"] == "other"
