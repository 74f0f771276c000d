"""The scripted model server, driven by the client that the package uses."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Generator
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from openai_behaviours import (
    Answer,
    Behaviour,
    Call,
    CutStream,
    Empty,
    Garbage,
    Hang,
    Reply,
    Status,
    Usage,
    router,
)
from openai_server import OpenAIServer

FAILURES: list[tuple[Behaviour, type[Exception]]] = [
    (Status(400), openai.BadRequestError),
    (Status(401), openai.AuthenticationError),
    (Status(429, retry_after=0.01), openai.RateLimitError),
    (Status(500), openai.InternalServerError),
    (CutStream(after_chunks=2), openai.APIConnectionError),
    (Hang(60), openai.APITimeoutError),
    (Garbage(), ValueError),
]


def model(server: OpenAIServer, **settings: Any) -> ChatOpenAI:
    """Open a client that does not retry."""
    defaults = {"model": "gpt-4o", "api_key": "test", "max_retries": 0, "timeout": 5}
    return ChatOpenAI(base_url=server.base_url, **{**defaults, **settings})


@pytest.mark.slow
def test_a_reply_is_given_with_its_usage(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("hello there", Usage(prompt=7, completion=3, cached=2)))
    reply = model(openai_server).invoke([SystemMessage("be kind"), HumanMessage("hi")])
    assert reply.content == "hello there"
    assert reply.response_metadata["finish_reason"] == "stop"
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["input_tokens"] == 7
    assert reply.usage_metadata["input_token_details"]["cache_read"] == 2
    (request,) = openai_server.requests
    assert request["messages"] == [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi"},
    ]


async def test_a_reply_is_given_on_the_event_loop(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("你好"))
    reply = await model(openai_server).ainvoke("hi")
    assert reply.content == "你好"
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["input_tokens"] > 0


def test_stream_in_pieces(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("hello there", Usage(7, 3)))
    chunks = list(model(openai_server, stream_usage=True).stream("hi"))
    assert "".join(str(chunk.content) for chunk in chunks) == "hello there"
    assert sum(bool(chunk.content) for chunk in chunks) == 4
    assert [chunk.usage_metadata["total_tokens"] for chunk in chunks if chunk.usage_metadata] == [
        10
    ]


async def test_astream_without_usage(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("a"))
    chunks = [chunk async for chunk in model(openai_server, stream_usage=False).astream("hi")]
    assert "".join(str(chunk.content) for chunk in chunks) == "a"
    assert not any(chunk.usage_metadata for chunk in chunks)


@pytest.mark.parametrize("streaming", [False, True])
def test_tool_calls_are_given_as_they_were_set(
    openai_server: OpenAIServer, streaming: bool
) -> None:
    calls = [Call("weather", {"city": "Oslo"}), Call("broken", "not JSON", id="call_2")]
    openai_server.then(Reply(tool_calls=calls))
    tool = {"name": "weather", "description": "Tell it.", "parameters": {"type": "object"}}
    bound = model(openai_server, streaming=streaming).bind_tools([tool])
    reply = bound.invoke("hi")
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [
        ("weather", {"city": "Oslo"})
    ]
    assert [call["name"] for call in reply.invalid_tool_calls] == ["broken"]
    assert reply.response_metadata["finish_reason"] == "tool_calls"
    assert openai_server.requests[0]["tools"][0]["function"]["name"] == "weather"


def test_tool_calls_are_streamed_in_pieces(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(tool_calls=[Call("weather", {"city": "Oslo"})]))
    chunks = list(model(openai_server).stream("hi"))
    pieces = [chunk for chunk in chunks if isinstance(chunk, AIMessageChunk)]
    assert sum(len(chunk.tool_call_chunks) for chunk in pieces) == 5


@pytest.mark.parametrize(("behaviour", "expected"), FAILURES)
async def test_each_failure_raises_its_error(
    openai_server: OpenAIServer, behaviour: Behaviour, expected: type[Exception]
) -> None:
    openai_server.then(*[behaviour] * 4)
    client = model(openai_server, timeout=0.2 if isinstance(behaviour, Hang) else 5)
    with pytest.raises(expected):
        client.invoke("hi")
    with pytest.raises(expected):
        list(client.stream("hi"))
    with pytest.raises(expected):
        await client.ainvoke("hi")
    with pytest.raises(expected):
        [chunk async for chunk in client.astream("hi")]
    streamed = [bool(request.get("stream")) for request in openai_server.requests]
    assert streamed == [False, True, False, True]


def test_what_came_before_the_cut_is_seen(openai_server: OpenAIServer) -> None:
    openai_server.then(CutStream(after_chunks=3, reply=Reply("abcdefgh")))
    stream = model(openai_server).stream("hi")
    assert [next(stream).content for _ in range(3)] == ["", "ab", "cd"]
    with pytest.raises(openai.APIConnectionError):
        next(stream)


@pytest.mark.parametrize("streaming", [False, True])
def test_an_empty_reply_is_an_empty_text(openai_server: OpenAIServer, streaming: bool) -> None:
    openai_server.then(Empty())
    assert model(openai_server, streaming=streaming).invoke("hi").content == ""


def test_retries_reach_the_next_behaviour(openai_server: OpenAIServer) -> None:
    openai_server.then(Status(429, retry_after=0.01), Status(500, retry_after=0.01), Reply("ok"))
    assert model(openai_server, max_retries=2).invoke("hi").content == "ok"
    assert len(openai_server.requests) == 3


def test_a_used_up_script_says_so(openai_server: OpenAIServer) -> None:
    with pytest.raises(openai.BadRequestError, match="no more behaviours"):
        model(openai_server).invoke("hi")


def test_router_chooses_by_system_message(openai_server: OpenAIServer) -> None:
    routes: dict[str, Answer] = {
        "arbiter": Reply("same"),
        "summary": lambda request: Reply(request["model"]),
    }
    openai_server.otherwise(router(routes, default=Reply("default")))
    client = model(openai_server)
    blocks = SystemMessage([{"type": "text", "text": "write a summary"}])
    assert (
        client.invoke([SystemMessage("you are an arbiter"), HumanMessage("hi")]).content == "same"
    )
    assert client.invoke([blocks, HumanMessage("hi")]).content == "gpt-4o"
    assert client.invoke("you are no arbiter").content == "default"


@pytest.mark.slow
async def test_requests_at_the_same_time(openai_server: OpenAIServer) -> None:
    openai_server.otherwise(lambda request: Reply(request["messages"][0]["content"]))
    client = model(openai_server)
    texts = [f"text {number}" for number in range(20)]
    replies = await asyncio.gather(*(client.ainvoke(text) for text in texts))
    assert [reply.content for reply in replies] == texts
    assert len(openai_server.requests) == 20


def test_a_client_may_leave(openai_server: OpenAIServer, capfd: pytest.CaptureFixture[str]) -> None:
    openai_server.then(Reply("x" * 400_000), Reply("next"))
    stream = model(openai_server).stream("hi")
    assert isinstance(stream, Generator)
    next(stream)
    stream.close()
    assert model(openai_server).invoke("hi").content == "next"
    assert capfd.readouterr().err == ""


def test_closing_wakes_what_hangs() -> None:
    """Leaving the server waits for its handlers, so one that slept on would hold this for a day."""
    with OpenAIServer(Hang(86_400)) as server, pytest.raises(openai.APITimeoutError):
        model(server, timeout=0.1).invoke("hi")


def test_other_paths_are_unknown(openai_server: OpenAIServer) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404") as caught:
        urllib.request.urlopen(f"{openai_server.base_url}/embeddings", data=b"{}", timeout=5)
    caught.value.close()
    assert openai_server.requests == []
