"""What the endpoint answers, with a real client: pieces, usage, tools, keys, limits, mistakes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import openai
import pytest
from endpoints import ask, listening, open_client, remembered
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt
from openai_behaviours import Reply
from openai_server import OpenAIServer
from sessions import open_graph
from starlette.applications import Starlette

from topicloom import ConfigurationError, ReplyRequest, Settings, build_session_graph
from topicloom.hosting import Graph
from topicloom.testing import ScriptedReply, ScriptedResponder, fake_roles, make_tool_call
from topicloom_app import make_endpoint
from topicloom_app.serve.chat_completions import read_chat

ASKED: Any = [{"role": "user", "content": "茶：一"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALLS: Any = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_form_of_the_reply_is_passed_on(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.base_url)
    openai_server.otherwise(Reply('{"city": "Rome"}'))
    chosen: Any = {"type": "function", "function": {"name": "weather"}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "place", "schema": {}}}
    settings = Settings(folder=tmp_path, fsync=False, window=8_000)
    builder = build_session_graph(model="openai:gpt-5-mini", settings=settings)
    app = make_endpoint(builder.compile(checkpointer=InMemorySaver()))
    with listening(app) as url, open_client(url) as client:
        given: Any = {"model": "topicloom", "messages": ASKED, "stream": stream, "user": "a"}
        list(client.chat.completions.create(**given, tools=[WEATHER], tool_choice=chosen))
        given["messages"] = [{"role": "user", "content": "茶：二"}]
        list(client.chat.completions.create(**given, response_format=form))
    called, formed = (r for r in openai_server.requests if r["messages"][-1]["role"] == "user")
    assert called["tool_choice"] == chosen
    assert [t["function"]["name"] for t in called["tools"]] == ["weather"]
    assert formed["response_format"] == form


@dataclass
class Behind:
    """What stands behind an endpoint."""

    folder: Path
    responder: ScriptedResponder = field(default_factory=ScriptedResponder)

    def open(self, **options: Any) -> Starlette:
        self.graph: Graph = open_graph(
            self.folder, fake_roles(self.responder), window=8_000, reply_attempts=1
        )
        return make_endpoint(self.graph, **options)


@pytest.fixture
def behind(tmp_path: Path) -> Behind:
    return Behind(tmp_path)


@pytest.fixture
def url(behind: Behind) -> Iterator[str]:
    with listening(behind.open()) as base:
        yield base


@pytest.fixture
def client(url: str) -> Iterator[openai.OpenAI]:
    with open_client(url) as opened:
        yield opened


@pytest.mark.slow
def test_a_stream_says_what_is_said_in_one_piece(client: openai.OpenAI, behind: Behind) -> None:
    behind.responder.script += ["Tea, then, and much of it."] * 2
    whole = client.chat.completions.create(model="topicloom", messages=ASKED, user="a")
    parts = list(
        client.chat.completions.create(
            model="topicloom",
            messages=ASKED,
            user="b",
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    said = [c.choices[0].delta.content or "" for c in parts if c.choices]
    assert len([piece for piece in said if piece]) > 3
    assert "".join(said) == whole.choices[0].message.content == "Tea, then, and much of it."
    assert parts[-2].choices[0].finish_reason == whole.choices[0].finish_reason == "stop"
    assert parts[-1].usage == whole.usage
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0
    assert len({part.id for part in parts}) == 1
    assert [m.id for m in client.models.list()] == [client.models.retrieve("topicloom").id]


@pytest.mark.parametrize("stream", [True, False])
def test_tools_that_the_client_runs(client: openai.OpenAI, behind: Behind, stream: bool) -> None:
    behind.responder.script += [make_tool_call("weather", {"city": "奥斯陆"}), "Rain."]
    answer: Any = client.chat.completions.create(
        model="topicloom", messages=ASKED, tools=[WEATHER], user="a", stream=stream
    )
    if stream:
        parts = [part.choices[0] for part in answer]
        (call,) = (c for part in parts for c in part.delta.tool_calls or ())
        assert parts[-1].finish_reason == "tool_calls"
    else:
        assert answer.choices[0].finish_reason == "tool_calls"
        (call,) = answer.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "weather",
        {"city": "奥斯陆"},
    )
    assert [*behind.responder.requests[0].callers_tools] == [WEATHER]
    called = call.model_dump(exclude={"index"})
    history: Any = [
        *ASKED,
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": call.id, "content": "rain, 4°"},
    ]
    reply = client.chat.completions.create(
        model="topicloom", messages=history, tools=[WEATHER], user="a"
    )
    assert reply.choices[0].message.content == "Rain."
    (result,) = [m for m in behind.responder.requests[1].messages if isinstance(m, ToolMessage)]
    assert result.content == "rain, 4°"
    roles = [m["role"] for m in remembered(behind.folder, behind.graph, "a")]
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
def test_tools_of_the_graph(behind: Behind, stream: bool) -> None:
    called = [AIMessageChunk(content="让我看看。"), *make_tool_call("weather", {"city": "奥斯陆"})]
    behind.responder.script += [called, "下雨。", "好。", make_tool_call("ask_human", {})]

    def weather(city: str) -> str:
        """The weather."""
        return "rain"

    def ask_human() -> Any:
        """Ask somebody."""
        return interrupt("?")

    graph = open_graph(
        behind.folder, fake_roles(behind.responder), tools=[weather, ask_human], window=8_000
    )
    with listening(make_endpoint(graph)) as url, open_client(url) as client:
        answer: Any = client.chat.completions.create(
            model="topicloom", messages=ASKED, user="a", stream=stream
        )
        if stream:
            text = "".join(part.choices[0].delta.content or "" for part in answer)
        else:
            text = answer.choices[0].message.content
        said = ask(client, [*ASKED, {"role": "assistant", "content": text}], "茶：二", user="a")
        roles = [m["role"] for m in remembered(behind.folder, graph, "a")]
        assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
        # Nobody here can say what the tool asks: that is no fault of the request.
        with pytest.raises(openai.InternalServerError):
            ask(client, said, "茶：三", user="a")


@pytest.mark.parametrize("path", ["/", "/v1"])
def test_the_address_in_a_browser_says_how_to_use_it(url: str, path: str) -> None:
    base = url.removesuffix("/v1")
    shown = httpx.get(base + path).text
    assert f"base URL to {base}/v1" in shown
    assert f"POST {base}/v1/chat/completions" in shown


@pytest.mark.parametrize("names", [("ann", "ann.x"), ("", "bob")])
def test_names_by_which_owners_would_not_be_apart(behind: Behind, names: tuple[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="cannot name a key"):
        behind.open(keys=dict(zip(names, ("one", "two"), strict=True)))


@pytest.mark.slow
def test_chats_and_owners_are_apart(behind: Behind) -> None:
    keys = {"ann": "secret-a", "bob": "secret-b"}
    with (
        listening(behind.open(keys=keys)) as url,
        open_client(url, "secret-a") as ann,
        open_client(url, "secret-b") as bob,
    ):
        ask(ann, [], "茶：安的密码", user="x")
        ask(ann, [], "山：别的", metadata={"chat_id": "other"})
        ask(bob, [], "海：有什么", user="x")
        for request in behind.responder.requests[1:]:
            assert not any("安的密码" in str(m.content) for m in request.messages)
        assert len(remembered(behind.folder, behind.graph, "ann.x")) == 2
        with open_client(url, "secret-c") as other, pytest.raises(openai.AuthenticationError):
            ask(other, [], "茶：谁", user="x")
        with httpx.Client() as bare:
            assert bare.get(f"{url}/models").status_code == 401
            assert bare.get(url.replace("/v1", "/healthz")).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("change", "status", "about"),
    [
        ({"model": "gpt-x"}, 404, "no model 'gpt-x'"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "robot", "content": "a"}]}, 400, "messages.0.role"),
        ({"messages": [{"role": "user", "content": {"a": 1}}]}, 400, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "  "}]}, 400, "empty"),
        ({"messages": [{"role": "system", "content": "a"}]}, 400, "nothing to answer"),
        ({"messages": [*ASKED, {"role": "assistant", "tool_calls": CALLS}]}, 400, "nothing to"),
        ({"messages": [{"role": "assistant", "content": "a"}]}, 400, "nothing to answer"),
        ({"messages": [{"role": "tool", "content": "a"}]}, 400, "nothing to answer"),
        ({"n": 2}, 400, "n: "),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"functions": [{"name": "f"}]}, 400, "functions"),
        ({"tools": [{"type": "function"}]}, 400, "tools.0.function"),
        ({"tool_choice": "required"}, 400, "tool_choice asks for a call"),
        ({"tool_choice": WEATHER, "tools": [WEATHER]}, 400, "the model here takes no tool_choice"),
    ],
)
def test_mistakes_in_a_request(url: str, change: dict[str, Any], status: int, about: str) -> None:
    body = {"model": "topicloom", "messages": ASKED, "user": "a", **change}
    answer = httpx.post(f"{url}/chat/completions", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (status, "invalid_request_error")
    assert about in error["message"]
    assert error.keys() == {"message", "type", "param", "code"}


def test_arguments_that_nest_too_deep_are_none() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[" * 100_000}}
    said = [*ASKED, {"role": "assistant", "tool_calls": [call]}, *ASKED]
    body = {"model": "topicloom", "messages": said, "user": "a"}
    turn, _ = read_chat(json.dumps(body).encode(), {})
    _, reply, _ = turn.messages
    assert isinstance(reply, AIMessage)
    assert [c["name"] for c in reply.invalid_tool_calls] == ["f"]


def test_what_is_no_request(behind: Behind) -> None:
    with listening(behind.open(max_bytes=1_000)) as url, httpx.Client(base_url=url) as client:
        json_type = {"Content-Type": "application/json"}
        answers = [
            client.post("chat/completions", content=b"{", headers=json_type),
            client.post("chat/completions", content=b"[" * 900, headers=json_type),
            client.post("chat/completions", content=b"1", headers=json_type),
            client.post("chat/completions", content=b" " * 1_001, headers=json_type),
            client.post("chat/completions", content=b"{}"),
            client.get("chat/completions"),
            client.get("nothing"),
            client.get("models/other"),
            client.get("models", headers={"Host": "evil.example"}),
        ]
    assert [a.status_code for a in answers] == [400, 400, 400, 413, 415, 405, 404, 404, 403]
    assert all(a.json()["error"]["message"] for a in answers)


def test_too_many_requests(behind: Behind) -> None:
    now = [0.0]
    app = behind.open(per_minute=2, clock=lambda: now[0])
    with listening(app) as url, open_client(url) as client:
        history = ask(client, ask(client, [], "茶：一"), "茶：二")
        with pytest.raises(openai.RateLimitError) as refused:
            ask(client, history, "茶：三")
        assert refused.value.response.headers["retry-after"] == "31"
        now[0] = 31.0
        ask(client, history, "茶：三")


def test_a_model_that_fails(client: openai.OpenAI, behind: Behind) -> None:
    behind.responder.script += [RuntimeError("no"), "Well."]
    with pytest.raises(openai.InternalServerError) as failed:
        ask(client, [], "茶：一", user="a")
    assert failed.value.status_code == 502
    # The client sends it again.
    said: Any = ask(client, [], "茶：一")
    assert said[-1]["content"] == "Well."
    behind.responder.script.append([AIMessageChunk(content="Half a "), RuntimeError("no")])
    stream = client.chat.completions.create(
        model="topicloom", messages=[*said, *ASKED], stream=True
    )
    with pytest.raises(openai.APIError, match="gave no reply"):
        list(stream)


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_that_breaks_off(behind: Behind, stream: bool) -> None:
    behind.responder.script += [[AIMessageChunk(content="Half a "), RuntimeError("no")], "All."]
    graph = open_graph(behind.folder, fake_roles(behind.responder))
    with listening(make_endpoint(graph)) as url, open_client(url) as client:
        if not stream:
            assert ask(client, [], "茶：一")[-1]["content"] == "All."
            return
        parts = client.chat.completions.create(model="topicloom", messages=ASKED, stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            list(parts)


def test_requests_of_a_session_are_in_line(behind: Behind) -> None:
    begun, go_on = Event(), Event()
    running: list[int] = []

    def reply(request: ReplyRequest) -> ScriptedReply:
        running.append(1)
        begun.set()
        go_on.wait(10)
        assert sum(running) == 1
        running.clear()
        return "好。"

    class Slow(ScriptedResponder):
        async def astream(self, request: ReplyRequest) -> Any:
            for chunk in await asyncio.to_thread(lambda: list(self.stream(request))):
                yield chunk

    behind.responder = Slow(otherwise=reply)
    with listening(behind.open()) as url, open_client(url) as client, ThreadPoolExecutor() as pool:
        first = pool.submit(ask, client, [], "茶：一", user="a")
        assert begun.wait(10)
        second = pool.submit(ask, client, [], "茶：二", user="a")
        go_on.set()
        both = first.result()[:1] + second.result()[:1]
        assert len(remembered(behind.folder, behind.graph, "a")) == 4
        assert [m for m in remembered(behind.folder, behind.graph, "a") if m in both] == both


def test_a_message_that_cannot_be_taken_in_is_named_and_leaves_nothing(
    client: openai.OpenAI, behind: Behind
) -> None:
    blocks: Any = [{"type": ["x"]}, {"type": "text", "text": "hi"}]
    chat: Any = {"x-chat-id": "c"}
    history = ask(client, [], "茶：一", extra_headers=chat)
    for told in ([], history):
        asked: Any = [*told, {"role": "user", "content": blocks}]
        with pytest.raises(openai.BadRequestError, match="type: Input should be"):
            client.chat.completions.create(model="topicloom", messages=asked, extra_headers=chat)
    history = ask(client, history, "茶：二", extra_headers=chat)
    assert remembered(behind.folder, behind.graph, "c") == history


@pytest.mark.slow
def test_line_breaks_of_one_user_let_others_be_answered(client: openai.OpenAI, url: str) -> None:
    """One call of a quadratic pattern would hold the interpreter for hours."""
    history: list[Any] = []
    for text in ("the boiler " + "w " * 100, "my notes:" + "\n" * 300_000 + "end", "the oven?"):
        history = ask(client, history, text, extra_headers={"x-chat-id": "c"})
    assert httpx.get(url.replace("/v1", "/healthz"), timeout=60).json() == {"status": "ok"}
    assert ask(client, [], "hello", extra_headers={"x-chat-id": "d"}, timeout=60)
