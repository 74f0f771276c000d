"""What a client is told while it waits, of what fails, and of calls that break off."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from endpoints import open_client, remembered, serving
from openai_behaviours import Call, CutStream, Drip, Reply, Status
from openai_server import OpenAIServer

from topicloom import ConfigurationError
from topicloom_app.serve.streams import Parts
from topicloom_app.serve.turns import Part

ASKED: Any = [{"role": "user", "content": "What was it?"}]
TOOL: Any = {"type": "function", "function": {"name": "write_file", "parameters": {}}}


@pytest.mark.slow
def test_a_stream_that_has_nothing_to_say_yet_says_so(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.then(Drip(0.4, Reply("slow, but sure")))
    body = {"model": "topicloom", "messages": ASKED, "stream": True}
    with serving(tmp_path, openai_server, heartbeat=0.1) as (url, _), httpx.Client() as client:
        begun = time.monotonic()
        with client.stream("POST", f"{url}/chat/completions", json=body) as answer:
            lines = iter(answer.iter_lines())
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert next(line for line in lines if line).startswith(":")
            assert time.monotonic() - begun < 10
            told = [line for line in lines if line]
    assert told[-1] == "data: [DONE]"
    assert len([line for line in told if line.startswith(":")]) > 2


@pytest.mark.slow
def test_an_error_before_the_headers_is_a_status_and_later_an_event(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    asked: Any = {"model": "topicloom", "messages": ASKED, "stream": True}
    openai_server.then(Status(500))
    with (
        serving(tmp_path / "1", openai_server, 1) as (url, _),
        open_client(url) as client,
        pytest.raises(openai.InternalServerError, match="gave no reply"),
    ):
        client.chat.completions.create(**asked)
    openai_server.then(CutStream(3, Reply("one two three four")))
    with (
        serving(tmp_path / "2", openai_server, 1, heartbeat=0.01) as (url, _),
        open_client(url) as client,
    ):
        stream = client.chat.completions.create(**asked)
        with pytest.raises(openai.APIError, match="gave no reply"):
            list(stream)


STATUSES: list[tuple[int, type[openai.APIStatusError], str]] = [
    (400, openai.BadRequestError, "Sending it again does not help"),
    (401, openai.AuthenticationError, "Your own key is all right"),
    (404, openai.NotFoundError, "name another one"),
    (422, openai.UnprocessableEntityError, "Sending it again does not help"),
]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("status", "kind", "said"), STATUSES)
def test_what_the_models_server_refuses_is_passed_on_and_asked_once(
    tmp_path: Path,
    openai_server: OpenAIServer,
    status: int,
    kind: type[openai.APIStatusError],
    said: str,
    stream: bool,
) -> None:
    openai_server.otherwise(Status(status, message="too much of it"))
    with (
        serving(tmp_path, openai_server) as (url, _),
        open_client(url) as client,
        pytest.raises(kind) as failed,
    ):
        client.chat.completions.create(model="topicloom", messages=ASKED, stream=stream)
    assert said in failed.value.message
    assert "too much of it" in failed.value.message
    assert "invoke" not in failed.value.message
    assert len(openai_server.requests) == 1


@pytest.mark.slow
def test_when_to_ask_again_is_passed_on(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Status(429, retry_after=17, message="slow down"))
    with serving(tmp_path, openai_server, 1) as (url, graph), open_client(url) as client:
        with pytest.raises(openai.RateLimitError, match="Try again in 17 seconds") as failed:
            client.chat.completions.create(model="topicloom", messages=ASKED, user="a")
        assert failed.value.response.headers["retry-after"] == "17"
        openai_server.then(Reply("A heron."))
        client.chat.completions.create(model="topicloom", messages=ASKED, user="a")
        assert [m["content"] for m in remembered(tmp_path, graph, "a")] == [
            "What was it?",
            "A heron.",
        ]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("text", ["", "I write it."])
def test_a_call_that_breaks_off_reaches_no_client(
    tmp_path: Path, openai_server: OpenAIServer, stream: bool, text: str
) -> None:
    """A router that cuts an answer may call its end one by a call."""
    half = Call("write_file", '{"path": "notes.txt", "content": "line one and')
    openai_server.otherwise(Reply(text, tool_calls=[half], finish_reason="tool_calls"))
    body = {"model": "topicloom", "messages": ASKED, "tools": [TOOL], "stream": stream}
    with serving(tmp_path, openai_server, 1) as (url, _):
        answer = httpx.post(f"{url}/chat/completions", json=body)
    assert "write_file" not in answer.text
    if text:
        assert answer.status_code == 200
        assert '"finish_reason": "length"' in answer.text.replace('":"', '": "')
    else:
        assert (answer.status_code, "arguments break off" in answer.text) == (502, True)


def test_who_leaves_ends_the_turn() -> None:
    ended: list[str] = []

    async def make() -> AsyncGenerator[Part]:
        try:
            yield "one"
            await asyncio.sleep(600)
        finally:
            ended.append("here")

    async def leave() -> None:
        parts = Parts(make(), grace=0.05)
        assert await parts.next() == "one"
        assert await parts.next(0.01) is None
        await parts.close()

    asyncio.run(leave())
    assert ended == ["here"]


ORIGIN = "http://localhost:3000"


@pytest.mark.slow
def test_a_page_that_may_ask(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Reply("A heron."))
    asks = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-chat-id",
    }
    body = {"model": "topicloom", "messages": ASKED}
    with serving(tmp_path, openai_server, origins=[ORIGIN], keys={"": "secret"}) as (url, _):
        path, key = f"{url}/chat/completions", {"Authorization": "Bearer secret"}
        first = httpx.options(path, headers=asks)
        assert first.status_code == 200
        assert first.headers["access-control-allow-origin"] == ORIGIN
        assert "x-chat-id" in first.headers["access-control-allow-headers"]
        answer = httpx.post(path, json=body, headers={**key, "Origin": ORIGIN})
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        refused = httpx.post(path, json=body, headers={"Origin": ORIGIN})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (
            401,
            ORIGIN,
        )
        other = httpx.options(path, headers={**asks, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("origin", ["*", "localhost:3000", "http://localhost:3000/chat", ""])
def test_origins_that_cannot_be_used(
    tmp_path: Path, openai_server: OpenAIServer, origin: str
) -> None:
    with (
        pytest.raises(ConfigurationError, match="origin"),
        serving(tmp_path, openai_server, origins=[origin]),
    ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"functions": []}, "Application/JSON; charset=utf-8"),
        ({"messages": [*ASKED, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]},
            {"role": "tool", "tool_call_id": "c", "content": "done"}]}, "application/json"),
        ({"tools": None, "n": None, "stream_options": None, "user": None}, "APPLICATION/json"),
    ],
)  # fmt: skip
def test_what_clients_write_differently(
    tmp_path: Path, openai_server: OpenAIServer, change: dict[str, Any], kind: str
) -> None:
    openai_server.otherwise(Reply("A heron."))
    body = {"model": "topicloom", "messages": ASKED, **change}
    with serving(tmp_path, openai_server) as (url, _):
        answer = httpx.post(
            f"{url}/chat/completions",
            content=json.dumps(body).encode(),
            headers={"Content-Type": kind},
        )
    assert answer.json()["choices"][0]["message"]["content"] == "A heron."
