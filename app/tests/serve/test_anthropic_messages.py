"""Anthropic's messages with its own client: what it is told, and what stands behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from endpoints import Talk, open_client, serving, talking
from langchain_core.messages import AIMessageChunk
from openai_behaviours import Reply, Status
from openai_server import OpenAIServer

from topicloom.testing import make_tool_call

if TYPE_CHECKING:  # the client takes seconds to import: for those who test it
    from anthropic import Anthropic

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
WEATHER: Any = {
    "name": "weather_of",
    "description": "The weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
GIVEN: Any = {"model": "topicloom", "max_tokens": 1_000}


def open_anthropic(url: str, key: str = "none") -> Anthropic:
    import anthropic

    return anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key=key, max_retries=0)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path, keys={"ann": "none"}) as opened:
        yield opened


@pytest.fixture
def client(talk: Talk) -> Iterator[Anthropic]:
    with open_anthropic(talk.url) as opened:
        yield opened


def say(client: Anthropic, messages: list[Any], stream: bool, **options: Any) -> Any:
    """The answer, of a stream as its client adds it up."""
    if not stream:
        return client.messages.create(messages=messages, **GIVEN, **options)
    with client.messages.stream(messages=messages, **GIVEN, **options) as events:
        said = "".join(events.text_stream)
        message = events.get_final_message()
    assert "".join(b.text for b in message.content if b.type == "text") == said
    return message


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_talk_in_the_anthropic_protocol_goes_on(
    talk: Talk, client: Anthropic, stream: bool
) -> None:
    metadata: Any = {"user_id": "u1"}
    said: list[Any] = [{"role": "user", "content": "茶：一"}]
    first = say(client, said, stream, system="Be brief.", metadata=metadata)
    assert (first.type, first.role, first.model) == ("message", "assistant", "topicloom")
    assert (first.stop_reason, first.content[0].text) == ("end_turn", "回答1。")
    assert first.usage.output_tokens > 0
    said += [{"role": "assistant", "content": first.content}]
    said += [{"role": "user", "content": [{"type": "text", "text": "茶：二"}]}]
    say(client, said, stream, metadata=metadata)
    assert [m["content"] for m in talk.remembered("ann.u1")] == [
        "茶：一",
        "回答1。",
        "茶：二",
        "回答2。",
    ]
    assert talk.responder.requests[0].messages[0].text.endswith("\n\nBe brief.")
    # The beginning of a reply is continued, as this protocol has always had it.
    said += [{"role": "assistant", "content": "回答"}]
    more = say(client, said, stream, metadata=metadata)
    assert more.content[0].text == "回答3。"
    assert talk.remembered("ann.u1")[-1]["content"] == "回答回答3。"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_tools_that_the_client_runs(talk: Talk, client: Anthropic, stream: bool) -> None:
    call = make_tool_call("weather_of", {"city": "奥斯陆"})
    talk.responder.script += [[AIMessageChunk(content="Let me see."), *call], "Rain.", call]
    said: list[Any] = [{"role": "user", "content": "茶：一"}]
    options: Any = {"tools": [WEATHER], "extra_headers": {"X-Chat-Id": "c1"}}
    first = say(client, said, stream, **options)
    text, used = first.content
    assert first.stop_reason == "tool_use"
    assert text.text == "Let me see."
    assert (used.name, used.input) == ("weather_of", {"city": "奥斯陆"})
    (tool,) = talk.responder.requests[0].callers_tools
    assert tool["function"]["parameters"] == WEATHER["input_schema"]
    result = {"type": "tool_result", "tool_use_id": used.id, "content": "rain, 4°"}
    said += [{"role": "assistant", "content": first.content}]
    said += [{"role": "user", "content": [result]}]
    second = say(client, said, stream, **options)
    assert second.content[0].text == "Rain."
    told = [(m["role"], m["content"]) for m in talk.remembered("ann.c1")]
    assert told == [
        ("user", "茶：一"),
        ("assistant", "Let me see."),
        ("tool", "rain, 4°"),
        ("assistant", "Rain."),
    ]
    # A call without words, and a result with some.
    said += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "再来"}]
    third = say(client, said, stream, **options)
    assert [b.type for b in third.content] == ["tool_use"]
    answer = [{**result, "tool_use_id": third.content[0].id}, {"type": "text", "text": "山：别的"}]
    said += [{"role": "assistant", "content": third.content}, {"role": "user", "content": answer}]
    say(client, said, stream, **options)
    assert [m["role"] for m in talk.remembered("ann.c1")][-4:] == [
        "assistant",
        "tool",
        "user",
        "assistant",
    ]


@pytest.mark.slow
def test_keys_models_and_mistakes(talk: Talk, client: Anthropic) -> None:
    import anthropic

    assert [m.id for m in client.models.list()] == ["topicloom"]
    assert client.models.retrieve("topicloom").display_name == "topicloom"
    with open_anthropic(talk.url, "other") as other, pytest.raises(anthropic.AuthenticationError):
        other.messages.create(messages=[{"role": "user", "content": "a"}], **GIVEN)
    with pytest.raises(anthropic.NotFoundError, match="no model"):
        client.messages.create(
            model="claude", max_tokens=1, messages=[{"role": "user", "content": "a"}]
        )
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}, "hologram"),
        ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, "tools.0"),
        ({"tool_choice": {"type": "any"}}, "the request has no tools"),
    ]
    for change, about in wrong:
        body = {**GIVEN, "messages": [{"role": "user", "content": "a"}], **change}
        answer = httpx.post(f"{talk.url}/messages", json=body, headers={"x-api-key": "none"})
        told = answer.json()
        assert (answer.status_code, told["type"]) == (400, "error")
        assert told["error"]["type"] == "invalid_request_error"
        assert about in told["error"]["message"]


@pytest.mark.slow
def test_tokens_are_counted_without_an_answer(talk: Talk, client: Anthropic) -> None:
    import anthropic

    said: list[Any] = [{"role": "user", "content": "A sentence of some words. " * 40}]

    def count(**options: Any) -> int:
        given: Any = {"model": "topicloom", "messages": said, **options}
        return client.messages.count_tokens(**given).input_tokens

    plain = count()
    assert 200 < plain < 400
    with_image = [{"type": "image", "source": {"type": "base64", "media_type": "image/png"}}]
    with_image[0]["source"]["data"] = PIXEL * 1_000  # type: ignore[index]
    assert count(system="Be brief, and to the point.") > plain
    assert count(tools=[WEATHER]) > plain
    assert plain < count(messages=[*said, {"role": "user", "content": with_image}]) < 2_000
    assert not talk.responder.requests
    assert not talk.folder.exists() or not list(talk.folder.rglob("*.jsonl"))
    with pytest.raises(anthropic.NotFoundError, match="no model"):
        count(model="claude")
    with pytest.raises(anthropic.BadRequestError, match="messages"):
        count(messages=[])


@pytest.mark.slow
def test_failures_of_the_model_reach_the_client(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    import anthropic

    openai_server.then(Status(429, retry_after=5), Reply("half", finish_reason="length"))
    said: list[Any] = [{"role": "user", "content": "What?"}]
    with (
        serving(tmp_path, openai_server, 1, heartbeat=0.0001) as (url, _),
        open_anthropic(url) as client,
    ):
        with pytest.raises(anthropic.RateLimitError, match="Try again in 5 seconds"):
            say(client, said, stream=False)
        assert say(client, said, stream=False).stop_reason == "max_tokens"
        with pytest.raises(anthropic.APIStatusError, match="Sending it again does not help"):
            say(client, said, stream=True)


TURNS = 20


@pytest.mark.slow
def test_the_model_is_asked_as_for_chat_completions(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.otherwise(lambda request: Reply(f"Heard it, {len(request['messages'])}."))

    def write(n: int, image: dict[str, Any]) -> Any:
        text = f"Sentence {n} of the boat."
        return [{"type": "text", "text": text}, image] if n % 5 == 3 else text

    with serving(tmp_path / "chat", openai_server) as (url, _), open_client(url) as chat:
        said: list[Any] = [{"role": "system", "content": "Be brief."}]
        image: Any = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        for n in range(TURNS):
            said.append({"role": "user", "content": write(n, image)})
            answer = chat.chat.completions.create(model="topicloom", messages=said)
            said.append({"role": "assistant", "content": answer.choices[0].message.content})
    expected = [r["messages"] for r in openai_server.requests]
    openai_server.requests.clear()
    with serving(tmp_path / "messages", openai_server) as (url, _), open_anthropic(url) as client:
        said, source = [], {"type": "base64", "media_type": "image/png", "data": PIXEL}
        for n in range(TURNS):
            said.append({"role": "user", "content": write(n, {"type": "image", "source": source})})
            reply = say(client, said, stream=n % 2 == 1, system="Be brief.")
            said.append({"role": "assistant", "content": reply.content})
    assert [r["messages"] for r in openai_server.requests] == expected
    assert json.dumps(expected).count(PIXEL) > 2
