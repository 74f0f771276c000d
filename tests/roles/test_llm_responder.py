"""The responder as a chat model: chunks as they come, errors as they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from threading import Event, get_ident
from typing import Any, TypedDict

import openai
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, StateGraph
from openai_behaviours import Behaviour, Call, CutStream, Empty, Garbage, Hang, Reply, Status, Usage
from openai_server import OpenAIServer

from topicloom import ReplyRequest, Responder
from topicloom.roles.models import open_model
from topicloom.roles.responder import ChatResponder

ways = pytest.mark.parametrize("how", ["sync", "async"])


@tool
def activate_topic(query: str) -> str:
    """Look further back."""
    return query


def request(*tools: BaseTool) -> ReplyRequest:
    messages = [SystemMessage("be kind"), HumanMessage("hi")]
    return ReplyRequest("s", messages, list(tools), "hi", [], "en")


def responder(server: OpenAIServer, **settings: Any) -> ChatResponder:
    options: dict[str, Any] = {"base_url": server.base_url, "timeout": 5, "max_retries": 0}
    return ChatResponder(open_model("openai:gpt-4o", api_key="test", **options | settings))


def replied(role: Responder, asked: ReplyRequest, how: str) -> Sequence[AIMessageChunk]:
    async def chunks() -> list[AIMessageChunk]:
        return [chunk async for chunk in role.astream(asked)]

    return list(role.stream(asked)) if how == "sync" else asyncio.run(chunks())


@ways
def test_the_reply_comes_in_pieces_with_its_usage(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply("hello there", Usage(7, 3, cached=2)))
    chunks = replied(responder(openai_server), request(), how)
    assert sum(bool(c.content) for c in chunks) == 4
    assert "".join(str(c.content) for c in chunks) == "hello there"
    usage = [c.usage_metadata for c in chunks if c.usage_metadata]
    assert [u["input_tokens"] for u in usage] == [7]
    assert [u["input_token_details"]["cache_read"] for u in usage] == [2]
    assert "tools" not in openai_server.requests[0]


@ways
def test_tool_calls_come_through(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply(tool_calls=[Call("activate_topic", {"query": "oak"})]))
    first, *rest = replied(responder(openai_server), request(activate_topic), how)
    for chunk in rest:
        first += chunk
    assert [(c["name"], c["args"]) for c in first.tool_calls] == [
        ("activate_topic", {"query": "oak"})
    ]
    (bound,) = openai_server.requests[0]["tools"]
    assert bound["function"]["name"] == "activate_topic"


@ways
def test_an_empty_reply_is_no_error_of_the_responder(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Empty())
    chunks = replied(responder(openai_server), request(), how)
    assert not any(c.content for c in chunks)


FAILURES: list[tuple[Behaviour, type[Exception]]] = [
    (Status(429, retry_after=0.01), openai.RateLimitError),
    (Status(500), openai.InternalServerError),
    (Hang(5), openai.APITimeoutError),
]


@ways
@pytest.mark.parametrize(("behaviour", "error"), FAILURES)
def test_what_the_client_raises_is_raised(
    openai_server: OpenAIServer, behaviour: Behaviour, error: type[Exception], how: str
) -> None:
    openai_server.then(behaviour)
    with pytest.raises(error):
        replied(responder(openai_server, timeout=0.3), request(), how)


@ways
@pytest.mark.parametrize("behaviour", [CutStream(after_chunks=3), Garbage()])
def test_a_broken_stream_is_an_error(
    openai_server: OpenAIServer, behaviour: Behaviour, how: str
) -> None:
    openai_server.then(behaviour)
    with pytest.raises(Exception, match=r".+"):
        replied(responder(openai_server), request(), how)


@ways
def test_an_overloaded_server_is_asked_again(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Status(429, retry_after=0.01), Reply("hello"))
    chunks = replied(responder(openai_server, max_retries=1), request(), how)
    assert "".join(str(c.content) for c in chunks) == "hello"


def test_a_reply_may_be_left_in_the_middle(openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Reply("a long reply " * 50))
    stream = responder(openai_server).stream(request())
    assert isinstance(stream, Generator)
    next(stream)
    stream.close()

    async def leave() -> None:
        chunks = responder(openai_server).astream(request())
        assert isinstance(chunks, AsyncGenerator)
        await anext(chunks)
        await chunks.aclose()

    asyncio.run(leave())


async def test_a_model_that_blocks_the_loop_has_one_thread_for_its_reply() -> None:
    threads, closed = set[int](), Event()

    class Blocking(GenericFakeChatModel):
        def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            try:
                for word in ("one", "two", "three"):
                    threads.add(get_ident())
                    yield ChatGenerationChunk(message=AIMessageChunk(content=word))
            finally:
                closed.set()

    chunks = ChatResponder(Blocking(messages=iter(()))).astream(request())
    assert isinstance(chunks, AsyncGenerator)
    assert [(await anext(chunks)).content for _ in range(2)] == ["one", "two"]
    assert len(threads) == 1
    await chunks.aclose()
    assert await asyncio.to_thread(closed.wait, 20)


class _State(TypedDict):
    text: str


@ways
def test_no_token_gets_into_the_stream_of_a_graph(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply("hello"))
    role = responder(openai_server)

    def node(state: _State) -> _State:
        return {"text": "".join(str(c.content) for c in role.stream(request()))}

    async def anode(state: _State) -> _State:
        return {"text": "".join([str(c.content) async for c in role.astream(request())])}

    builder = StateGraph(_State)
    builder.add_node("reply", node if how == "sync" else anode)
    builder.add_edge(START, "reply")
    builder.add_edge("reply", END)
    graph = builder.compile()
    modes: Any = ["messages", "values"]

    async def astreamed() -> list[Any]:
        return [part async for part in graph.astream({"text": ""}, stream_mode=modes)]

    streamed: list[Any] = (
        list(graph.stream({"text": ""}, stream_mode=modes))
        if how == "sync"
        else asyncio.run(astreamed())
    )
    assert [mode for mode, _ in streamed] == ["values", "values"]
    assert streamed[-1][1] == {"text": "hello"}
