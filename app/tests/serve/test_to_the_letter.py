"""What a protocol promises holds, or is refused: limits, stop texts, an agent's items, resends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from endpoints import Talk, listening, open_client, serving, talking
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Reply
from openai_server import OpenAIServer
from tables import each_row

from topicloom import ConfigurationError, FileStorage, Memory, Settings, build_session_graph
from topicloom_app import make_endpoint

TEA = [{"role": "user", "content": "tea"}]


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as opened:
        yield opened


def post(talk: Talk, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    return httpx.post(f"{talk.url}/{path}", json={"model": "topicloom"} | body, headers=headers)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("chat/completions", {"messages": TEA, "logprobs": True}),
    ("chat/completions", {"messages": TEA, "modalities": ["text", "audio"]}),
    ("chat/completions", {"messages": TEA, "audio": {"voice": "a", "format": "wav"}}),
    ("chat/completions", {"messages": TEA, "n": 2}),
    ("chat/completions", {"messages": TEA, "stop": ""}),
    ("chat/completions", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
    ("responses", {"input": "tea", "top_logprobs": 2}),
    ("responses", {"input": "tea", "include": ["message.output_text.logprobs"]}),
    ("responses", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
    ("messages", {"messages": TEA, "mcp_servers": [{"type": "url", "url": "x", "name": "y"}]}),
    ("messages", {"messages": [{"role": "user", "content": [{"type": "image", "source": "x"}]}]}),
    (
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": 7}]}]},
    ),
]


@pytest.mark.slow
def test_what_cannot_be_given_is_refused(talk: Talk) -> None:
    answered = [(path, body) for path, body in REFUSED if post(talk, path, body).status_code != 400]
    assert answered == []


@pytest.mark.slow
@each_row(
    ("path", "body"),
    [
        ("chat/completions", {"messages": TEA, "max_tokens": 7, "stop": "END"}),
        ("chat/completions", {"messages": TEA, "max_completion_tokens": 7, "stop": ["END"]}),
        ("messages", {"messages": TEA, "max_tokens": 7, "stop_sequences": ["END"]}),
    ],
)
def test_limits_and_stop_texts_reach_the_model(
    openai_server: OpenAIServer, tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    openai_server.then(Reply("Tea."), Reply("Tea."), Reply("Tea."))
    with serving(tmp_path / str(len(str(body))), openai_server) as (url, _):
        assert httpx.post(f"{url}/{path}", json={"model": "topicloom"} | body).status_code == 200
    sent = openai_server.requests[-1]
    assert (sent.get("max_tokens") or sent.get("max_completion_tokens"), sent["stop"]) == (
        7,
        ["END"],
    )


@pytest.mark.slow
def test_a_reply_without_a_model_is_cut(tmp_path: Path) -> None:
    settings = Settings(folder=tmp_path, fsync=False)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    with listening(make_endpoint(graph)) as url:
        asked = {"model": "topicloom", "messages": TEA}
        whole, cut = (
            httpx.post(f"{url}/chat/completions", json=asked | more).json()["choices"][0]
            for more in ({}, {"max_tokens": 5})
        )
    assert whole["finish_reason"] == "stop"
    assert cut["finish_reason"] == "length"
    assert whole["message"]["content"].startswith(cut["message"]["content"].rstrip())
    assert 0 < len(cut["message"]["content"]) <= 15


@pytest.mark.slow
def test_a_stream_of_messages_begins_with_what_was_asked(talk: Talk) -> None:
    import anthropic

    asked: Any = {"model": "topicloom", "max_tokens": 50, "messages": TEA}
    with (
        anthropic.Anthropic(base_url=talk.url.removesuffix("/v1"), api_key="none") as client,
        client.messages.stream(**asked) as events,
    ):
        (begun,) = [e for e in events if e.type == "message_start"]
    assert begun.message.usage.input_tokens > 0


AGENT: list[dict[str, Any]] = [
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "b64made=="},
    {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
    {
        "type": "local_shell_call",
        "call_id": "c2",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
        "status": "completed",
    },
    {"type": "local_shell_call_output", "id": "c2", "output": "a.txt"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "of_next_year", "id": "x"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
]


@pytest.mark.slow
def test_items_of_an_agent_are_read_or_passed_over(talk: Talk) -> None:
    tools = [{"type": "custom", "name": "apply_patch"}, {"type": "web_search"}]
    done = post(talk, "responses", {"input": AGENT, "tools": tools, "user": "ann"})
    assert done.status_code == 200
    assert [m["content"] for m in talk.remembered("ann")][:3] == ["", "ok", ""]
    assert talk.remembered("ann")[3]["content"] == "a.txt"


@pytest.mark.slow
def test_an_agent_is_recorded_where_the_server_or_a_header_says_so(tmp_path: Path) -> None:
    for name, record, headers in (
        ("a", False, {}),
        ("b", True, {}),
        ("c", False, {"X-Topicloom-Record": "true"}),
    ):
        with talking(tmp_path / name, record=record) as talk:
            asked = {"input": "My locker is 31.", "store": False}
            assert post(talk, "responses", asked, **headers).status_code == 200
        assert len(FileStorage(tmp_path / name).sessions()) == (name != "a")


@pytest.mark.slow
def test_a_conversation_that_is_kept_is_sent_as_one_item(talk: Talk) -> None:
    client = talk.client
    first = client.responses.create(model="topicloom", input="My locker is 31.")
    said: list[Any] = [
        {"role": "user", "content": "My locker is 31."},
        {"role": "assistant", "content": first.output_text},
    ]
    short = client.responses.compact(model="topicloom", input=said)
    (item,) = short.output
    assert item.type == "compaction"
    more: Any = [item.model_dump(exclude_none=True), {"role": "user", "content": "And the key?"}]
    client.responses.create(model="topicloom", input=more)
    assert [m["content"] for m in talk.remembered(talk.session)][::2] == [
        "My locker is 31.",
        "And the key?",
    ]
    with pytest.raises(openai.BadRequestError, match="nothing of this conversation is kept"):
        client.responses.compact(model="topicloom", input="Something else.")


@pytest.mark.slow
@each_row(
    ("minutes", "headers", "times"),
    [
        (0.1, {}, 1),
        (60 * 24, {}, 2),
        (60 * 24, {"X-Stainless-Retry-Count": "1"}, 1),
        (0.1, {"Idempotency-Key": "{}"}, 2),
        (60 * 24, {"Idempotency-Key": "k"}, 1),
    ],
)
def test_what_is_said_again_is_kept_again(
    tmp_path: Path, minutes: float, headers: dict[str, str], times: int
) -> None:
    for number, (path, who) in enumerate(
        [("chat/completions", {"user": "ann"}), ("chat/completions", {}), ("messages", {})]
    ):
        with talking(tmp_path / f"{number}-{minutes}-{times}-{[*headers]}") as talk:
            for turn in range(2):
                asked = {"messages": [{"role": "user", "content": "Took the pill."}], **who}
                named = {k: v.format(turn) for k, v in headers.items()}
                assert post(talk, path, asked | {"max_tokens": 99}, **named).status_code == 200
                talk.waited[0] = timedelta(minutes=minutes)
            said = [m["content"] for m in talk.remembered(talk.session)]
            assert said.count("Took the pill.") == times, (path, who)


@each_row("keys", [{"ann": ""}, {"": " "}, {"ann": "a", "bob": ""}])
def test_an_empty_key_is_refused(keys: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="lets anybody in"):
        make_endpoint(build_session_graph().compile(), keys=keys)


@pytest.mark.slow
def test_an_empty_user_is_nobody(tmp_path: Path) -> None:
    with talking(tmp_path, keys={"app": "secret"}, trusted=["app"]) as talk:
        client = open_client(talk.url, "secret")
        for name in ("X-Topicloom-User", "X-Topicloom-Scope"):
            with pytest.raises(openai.BadRequestError, match="is empty"):
                client.chat.completions.create(
                    model="topicloom",
                    messages=[{"role": "user", "content": "tea"}],
                    extra_headers={"X-Topicloom-User": "ann", name: ""},
                )
        assert httpx.get(f"{talk.url}/models", headers={"x-api-key": ""}).status_code == 401


@pytest.mark.slow
def test_the_users_clock_comes_with_a_header_or_with_the_key(tmp_path: Path) -> None:
    evening = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    settings = Settings(folder=tmp_path, fsync=False, timezone="UTC")
    built = build_session_graph(settings=settings, clock=lambda: evening)
    graph = built.compile(checkpointer=InMemorySaver())
    keys, zones = {"ann": "a", "bob": "b"}, {"ann": "America/Los_Angeles"}
    asked = {"model": "topicloom", "messages": TEA, "user": "me"}
    with listening(make_endpoint(graph, keys=keys, timezones=zones)) as url:
        for key, headers, day in (
            ("a", {}, "2026-03-28"),
            ("a", {"X-Topicloom-Timezone": "Asia/Kolkata"}, "2026-03-29"),
            ("a", {}, "2026-03-29"),  # where the thread was last goes before where its key is
            ("b", {}, "2026-03-29"),
            ("b", {"X-Topicloom-Timezone": "America/Los_Angeles"}, "2026-03-28"),
        ):
            told = headers | {"x-api-key": key}
            path = f"{url}/chat/completions"
            said = [{"role": "user", "content": f"tea by {key}, {headers}, {day}"}]
            sent = asked | {"messages": said}
            assert httpx.post(path, json=sent, headers=told).status_code == 200
            name = {"a": "ann", "b": "bob"}[key]
            thread: Any = {"configurable": {"thread_id": f"{name}.me"}}
            assert Memory.of(graph, thread).history()[-1].day == day, (key, headers)
        wrong = {"x-api-key": "a", "X-Topicloom-Timezone": "Mars"}
        refused = httpx.post(f"{url}/chat/completions", json=asked, headers=wrong)
        assert (refused.status_code, "no time zone" in refused.text) == (400, True)
