"""A reply that was cut off is kept word for word, and is not taken for whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Behaviour, Call, Reply
from openai_server import OpenAIServer
from sessions import last_receipt, tell, thread, transcript_of

from topicloom import Settings, build_session_graph
from topicloom.hosting import Graph

CONFIG = thread()
TEXT = "It was the heron, and then"


def open_graph(server: OpenAIServer, folder: Path, *tools: Any) -> Graph:
    settings = Settings(folder=folder, fsync=False, base_url=server.base_url, api_key="k")
    built = build_session_graph(model="openai:main", settings=settings, tools=tools)
    return built.compile(checkpointer=InMemorySaver())


CUT: list[Any] = [
    (Reply(TEXT, finish_reason="length"), "length"),
    (Reply(TEXT, finish_reason="content_filter"), "content_filter"),
    (Reply(TEXT, finish_reason=""), "incomplete: no end"),
]


@pytest.mark.parametrize(("behaviour", "reason"), CUT)
def test_a_cut_reply_says_so(
    openai_server: OpenAIServer, tmp_path: Path, behaviour: Behaviour, reason: str
) -> None:
    openai_server.then(behaviour, Reply("And then it flew."))
    graph = open_graph(openai_server, tmp_path)
    reply = tell(graph, CONFIG, "What was it?")[-1]
    assert (reply.content, reply.additional_kwargs["cut"]) == (TEXT, reason)
    assert last_receipt(tmp_path, graph, CONFIG).events == (f"the reply was cut off: {reason}",)
    stored = transcript_of(tmp_path, graph, CONFIG)[-1]
    assert (stored.text, stored.message.additional_kwargs) == (TEXT, {"cut": reason})
    whole = tell(graph, CONFIG, "Go on.")[-1]
    assert "cut" not in whole.additional_kwargs
    assert {"role": "assistant", "content": TEXT} in openai_server.requests[-1]["messages"]
    assert last_receipt(tmp_path, graph, CONFIG).events == ()


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["length", "content_filter", "", "tool_calls", "stop"])
def test_no_tool_runs_by_half_of_what_it_was_to_be_told(
    openai_server: OpenAIServer, tmp_path: Path, reason: Any
) -> None:
    """LangChain closes what is open: `{"path": "/home/a` is a path as well.

    A router may call such an end one by a call: then the arguments alone say that they break off.
    """
    why = "a tool call whose arguments break off"
    removed = list[str]()

    def remove(path: str) -> str:
        """Remove a folder."""
        removed.append(path)
        return "done"

    half = [Call("remove", '{"path": "/home/a')]
    said = Reply("So be it.", tool_calls=half, finish_reason=reason)
    silent = Reply("", tool_calls=half, finish_reason=reason)
    openai_server.then(said, silent, Reply("Better not."))
    graph = open_graph(openai_server, tmp_path, remove)
    reply = tell(graph, CONFIG, "Remove /home/a/b.")[-1]
    assert (reply.content, reply.additional_kwargs["cut"]) == (
        "So be it.",
        {"": "incomplete: no end", "tool_calls": why, "stop": why}.get(reason, reason),
    )
    assert tell(graph, CONFIG, "Remove it!")[-1].content == "Better not."
    assert removed == []
