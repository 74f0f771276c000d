"""Replies that do not end by themselves: for ever on their way, or calls that nobody can parse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Event

import pytest
from examples import scaled
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Call, Reply
from openai_server import OpenAIServer
from sessions import last_receipt, open_graph, tell, thread, transcript_of
from tables import each_row

from topicloom import ReplyError, ReplyRequest, Settings, build_session_graph
from topicloom.hosting import Graph
from topicloom.state.messages import is_json_so_far
from topicloom.testing import fake_roles

CONFIG = thread()
ways = pytest.mark.parametrize("how", ["sync", "async"])
NOTES: list[str] = []


def note(text: str) -> str:
    """Write a note."""
    NOTES.append(text)
    return "Written."


def say(graph: Graph, how: str) -> AIMessage:
    said = {"messages": [HumanMessage("Tell me all.")]}
    if how == "async":
        state = asyncio.run(graph.ainvoke(said, CONFIG))
    else:
        state = graph.invoke(said, CONFIG)
    reply = state["messages"][-1]
    assert isinstance(reply, AIMessage)
    return reply


class Endless:
    """Says one thing, then keeps its stream open."""

    model = "endless"

    def __init__(self) -> None:
        self.let_go, self.closed = Event(), Event()

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        try:
            yield AIMessageChunk(content="The first half.")
            self.let_go.wait(600)
            yield AIMessageChunk(content="Too late.")
        finally:
            self.closed.set()

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        try:
            yield AIMessageChunk(content="The first half.")
            await asyncio.sleep(600)
        finally:
            self.closed.set()


@ways
def test_a_reply_that_goes_on_for_ever_is_cut(tmp_path: Path, how: str) -> None:
    responder = Endless()
    graph = open_graph(tmp_path, fake_roles(responder), reply_deadline=0.5)
    reply, cut = say(graph, how), "not finished within 0.5 s"
    assert (reply.content, reply.additional_kwargs["cut"]) == ("The first half.", cut)
    assert last_receipt(tmp_path, graph, CONFIG).events == (f"the reply was cut off: {cut}",)
    assert transcript_of(tmp_path, graph, CONFIG)[-1].message.additional_kwargs == {"cut": cut}
    responder.let_go.set()
    assert responder.closed.wait(60), "the request is ended"


def open_noting(server: OpenAIServer, folder: Path) -> Graph:
    settings = Settings(
        folder=folder, fsync=False, base_url=server.base_url, api_key="k", reply_attempts=1
    )
    built = build_session_graph(model="openai:main", settings=settings, tools=[note])
    return built.compile(checkpointer=InMemorySaver())


@pytest.mark.slow
@ways
def test_arguments_that_nobody_can_parse(
    openai_server: OpenAIServer, tmp_path: Path, how: str
) -> None:
    """LangChain would try one character after another: for minutes, or for days."""
    endless = Call("note", '{"text": } ' + "tea " * 200_000)
    openai_server.otherwise(Reply("So.", tool_calls=[endless]))
    graph = open_noting(openai_server, tmp_path)
    reply = say(graph, how)
    assert reply.content == "So."
    assert reply.additional_kwargs["cut"] == "a tool call whose arguments cannot be read"
    assert (reply.tool_calls, reply.invalid_tool_calls) == ([], [])
    openai_server.otherwise(Reply("", tool_calls=[endless]))
    with pytest.raises(ReplyError, match="arguments cannot be read"):
        say(graph, how)
    openai_server.otherwise(Reply("Never mind."))
    assert tell(graph, CONFIG, "Go on.")[-1].content == "Never mind."


@ways
@pytest.mark.slow
def test_large_arguments_are_whole(openai_server: OpenAIServer, tmp_path: Path, how: str) -> None:
    text = 'tea "in\\n cups" ' * scaled(30_000)
    NOTES.clear()
    openai_server.then(Reply("", tool_calls=[Call("note", {"text": text})]), Reply("Noted."))
    assert say(open_noting(openai_server, tmp_path), how).content == "Noted."
    assert [text] == NOTES


@each_row("text", ['{"a": "b', '{"a', "{", '{"a": tr', '{"a": [1, -', "", '"\\u12'])
def test_json_may_go_on(text: str) -> None:
    assert is_json_so_far(text)


@each_row(
    "text",
    ["tea " * 9, '{"a": 1} and more text', '{"a": } ' + "x" * 20, '{"n": ' + "9" * 5_000],
)
def test_this_is_none(text: str) -> None:
    assert not is_json_so_far(text)
