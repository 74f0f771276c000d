"""OpenAI's Responses with its own client: what it is told, and what stands behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from endpoints import Talk, ask, open_client, serving, talking
from langchain_core.messages import AIMessageChunk
from openai.types.responses import Response
from openai_behaviours import Reply
from openai_server import OpenAIServer

from topicloom import FileStorage
from topicloom.testing import make_tool_call

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
WEATHER: Any = {
    "type": "function",
    "name": "weather_of",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path, keys={"ann": "none", "bob": "other"}) as opened:
        yield opened


def respond(talk: Talk, given: Any, **options: Any) -> Response:
    """The answer to an input, streamed or not."""
    made: Any = talk.client.responses.create(model="topicloom", input=given, **options)
    if not options.get("stream"):
        response: Response = made
        return response
    events = list(made)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    said = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    last = events[-1]
    assert last.type in ("response.completed", "response.incomplete")
    response = last.response
    assert response.output_text == said
    assert {events[0].response.id, response.id} == {response.id}
    done = [e.item for e in events if e.type == "response.output_item.done"]
    assert done == response.output
    return response


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_talk_goes_on_from_an_answer(talk: Talk, stream: bool) -> None:
    first = respond(talk, "茶：一", stream=stream, instructions="Be brief.", metadata={"a": "b"})
    assert (first.status, first.output_text) == ("completed", "回答1。")
    assert (first.instructions, first.metadata) == ("Be brief.", {"a": "b"})
    assert first.usage is not None
    assert first.usage.total_tokens == first.usage.input_tokens + first.usage.output_tokens > 0
    second = respond(talk, "茶：二", stream=stream, previous_response_id=first.id)
    assert second.previous_response_id == first.id
    said = ["茶：一", "回答1。", "茶：二", "回答2。"]
    assert [m["content"] for m in talk.remembered(talk.session)] == said
    # Another way on from the first answer is a branch.
    third = respond(talk, "山：三", stream=stream, previous_response_id=first.id)
    assert [m["content"] for m in talk.remembered(talk.session)] == [*said[:2], "山：三", "回答3。"]
    respond(talk, "茶：四", stream=stream, previous_response_id=second.id)
    assert [m["content"] for m in talk.remembered(talk.session)][:4] == said
    respond(talk, "山：五", stream=stream, previous_response_id=third.id)
    assert [m["content"] for m in talk.remembered(talk.session)][2] == "山：三"


@pytest.mark.slow
def test_whole_histories_are_the_same_talk(talk: Talk) -> None:
    """A client may name an answer, send all that was said, or name the items of it."""
    first = respond(talk, "茶：一", user="ann")
    given: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "茶：一"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        *[item.model_dump(exclude_none=True) for item in first.output],
        {"role": "user", "content": "茶：二"},
    ]
    second = respond(talk, given, user="ann")
    named: list[Any] = [
        *given[:1],
        {"type": "item_reference", "id": first.output[0].id},
        *given[3:],
        {"type": "item_reference", "id": second.output[0].id},
        {"role": "user", "content": "茶：三"},
    ]
    respond(talk, named, user="ann")
    said = [m["content"] for m in talk.remembered("ann.ann")]
    assert said == ["茶：一", "回答1。", "茶：二", "回答2。", "茶：三", "回答3。"]
    # Chat completions go on with it as well.
    history = talk.remembered("ann.ann")
    assert ask(talk.client, history, "茶：四", user="ann") == talk.remembered("ann.ann")


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("by_id", [False, True])
def test_tools_that_the_client_runs(talk: Talk, stream: bool, by_id: bool) -> None:
    called = [
        AIMessageChunk(content="Let me see."),
        *make_tool_call("weather_of", {"city": "奥斯陆"}),
    ]
    talk.responder.script += [called, "Rain."]
    first = respond(talk, "茶：一", tools=[WEATHER], user="ann", stream=stream)
    message, call = first.output
    assert message.type == "message"
    assert call.type == "function_call"
    assert (call.name, json.loads(call.arguments)) == ("weather_of", {"city": "奥斯陆"})
    (tool,) = talk.responder.requests[0].callers_tools
    assert tool["function"]["name"] == "weather_of"
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain, 4°"}
    if by_id:
        second = respond(talk, [result], previous_response_id=first.id, stream=stream)
    else:
        shown = [item.model_dump(exclude_none=True) for item in first.output]
        told = [{"role": "user", "content": "茶：一"}, *shown, result]
        second = respond(talk, told, user="ann", stream=stream)
    assert second.output_text == "Rain."
    said = [
        ("user", "茶：一"),
        ("assistant", "Let me see."),
        ("tool", "rain, 4°"),
        ("assistant", "Rain."),
    ]
    assert [(m["role"], m["content"]) for m in talk.remembered("ann.ann")] == said
    # Vercel's AI SDK names the words by their item, and writes the call out; others may name both.
    words, called_ = {"type": "item_reference", "id": message.id}, call.model_dump()
    for items in ([words, called_], [words, {**words, "id": call.id}], [message.model_dump()]):
        told = [{"role": "user", "content": "茶：一"}, *items]
        told += [called_] if len(items) == 1 else []
        given: Any = [*told, result, {"role": "assistant", "content": "Rain."}]
        respond(talk, [*given, {"role": "user", "content": "茶：二"}], user="ann", stream=stream)
        kept = [(m["role"], m["content"]) for m in talk.remembered("ann.ann")]
        assert kept[:5] == [*said, ("user", "茶：二")]
        assert len(kept) == 6


@pytest.mark.slow
def test_answers_that_are_not_there(talk: Talk) -> None:
    first = respond(talk, "茶：一")
    unknown = [f"resp_{'0' * 64}", "resp_x", f"{first.id[:-1]}z"]
    for name in unknown:
        with pytest.raises(openai.NotFoundError, match="not found"):
            respond(talk, "茶：二", previous_response_id=name)
    with open_client(talk.url, "other") as bob, pytest.raises(openai.NotFoundError):
        bob.responses.create(model="topicloom", input="山", previous_response_id=first.id)


@pytest.mark.slow
def test_an_answer_is_read_again_by_its_id(talk: Talk) -> None:
    call = make_tool_call("weather_of", {"city": "奥斯陆"})
    talk.responder.script += ["Well.", [AIMessageChunk(content="Let me see."), *call]]
    first = respond(talk, "茶：一", user="ann")
    given: Any = {"previous_response_id": first.id, "tools": [WEATHER]}
    second = respond(talk, "茶：二", stream=True, **given)
    respond(talk, "茶：三", previous_response_id=first.id)
    for given_then in (first, second):
        again = talk.client.responses.retrieve(given_then.id)
        kept = {"id", "output", "usage", "status", "model", "previous_response_id"}
        assert again.model_dump(include=kept) == given_then.model_dump(include=kept)
        assert abs(again.created_at - given_then.created_at) < 60
    with open_client(talk.url, "other") as bob, pytest.raises(openai.NotFoundError):
        bob.responses.retrieve(first.id)
    # What is not built says so in the protocol's form.
    with pytest.raises(openai.NotFoundError):
        talk.client.responses.input_items.list(first.id)
    with pytest.raises(openai.APIStatusError) as refused:
        talk.client.responses.delete(first.id)
    assert refused.value.status_code == 405
    assert len(talk.remembered("ann.ann")) == 4


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_to_be_stored_leaves_nothing(talk: Talk, stream: bool) -> None:
    kept = respond(talk, "茶：一", user="ann")
    given: Any = [
        {"role": "user", "content": "山：一"},
        {"role": "assistant", "content": "甲"},
        {"role": "user", "content": "山：密码是 Quitte"},
    ]
    while_it_goes_on: list[str] = []

    def look(_: Any) -> str:
        while_it_goes_on.extend(p.name for p in talk.folder.iterdir())
        return "回答2。"

    talk.responder.otherwise = look
    answer = respond(talk, given, user="ann", store=False, stream=stream)
    assert answer.output_text == "回答2。"
    # A crash in the middle of it leaves nothing either.
    assert "ann.ann" in while_it_goes_on
    assert not [name for name in while_it_goes_on if "unrecorded" in name]
    saver: Any = talk.graph.checkpointer
    threads = {found.config["configurable"]["thread_id"] for found in saver.list(None)}
    assert threads == {"ann.ann"}
    assert [m.type for m in talk.responder.requests[-1].messages] == [
        "system",
        "human",
        "ai",
        "human",
    ]
    assert FileStorage(talk.folder).sessions() == ["ann.ann"]
    stored = "".join(p.read_text("utf-8") for p in talk.folder.rglob("*.jsonl"))
    assert "Quitte" not in stored
    with pytest.raises(openai.NotFoundError):
        respond(talk, "山：二", previous_response_id=answer.id)
    with pytest.raises(openai.BadRequestError, match="send the whole conversation"):
        respond(talk, "山：二", previous_response_id=kept.id, store=False)


@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"input": []}, "input"),
        ({"input": [{"role": "robot", "content": "a"}]}, "role"),
        ({"input": [{"role": "user", "content": [{"type": "hologram"}]}]}, "hologram"),
        ({"input": [{"role": "system", "content": "a"}]}, "nothing to answer"),
        ({"input": [{"type": "web_search_call", "id": "a"}]}, "nothing to answer"),
        (
            {"tools": [{"type": "web_search"}], "tool_choice": "required"},
            "the request has no tools",
        ),
        ({"tool_choice": "required"}, "the request has no tools"),
        ({"background": True}, "background"),
        ({"conversation": "c1"}, "conversation"),
        ({"text": {"format": {"type": "json_object"}}}, "takes no response_format"),
    ],
)
def test_mistakes_in_a_request(talk: Talk, change: dict[str, Any], about: str) -> None:
    body = {"model": "topicloom", "input": "茶：一", **change}
    key = {"Authorization": "Bearer none"}
    answer = httpx.post(f"{talk.url}/responses", json=body, headers=key)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error")
    assert about in error["message"]


@pytest.mark.slow
def test_a_reply_that_was_cut_or_failed_says_so(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.then(Reply("It was the", finish_reason="length"))
    with (
        serving(tmp_path, openai_server, 1, heartbeat=0.0001) as (url, _),
        open_client(url) as client,
    ):
        cut = client.responses.create(model="topicloom", input="What?")
        assert (cut.status, cut.output_text) == ("incomplete", "It was the")
        assert cut.incomplete_details is not None
        assert cut.incomplete_details.reason == "max_output_tokens"
        # The script of the server has no more: status 400, behind the headers.
        with httpx.Client(timeout=60) as bare:
            body = {"model": "topicloom", "input": "What?", "stream": True}
            told = bare.post(f"{url}/responses", json=body).text
    assert "event: error" in told
    events = [json.loads(line[6:]) for line in told.splitlines() if line.startswith("data: ")]
    assert events[-1]["type"] == "response.failed"
    assert "Sending it again does not help" in events[-1]["response"]["error"]["message"]


@pytest.mark.slow
def test_the_form_of_a_reply_is_passed_on(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Reply('{"city": "Rome"}'))
    form: Any = {"type": "json_schema", "name": "place", "schema": {}, "strict": True}
    with serving(tmp_path, openai_server) as (url, _), open_client(url) as client:
        given: Any = {"model": "topicloom", "user": "a"}
        client.responses.create(input="one", text={"format": form}, **given)
        choice: Any = {"type": "function", "name": "weather_of"}
        client.responses.create(input="two", tools=[WEATHER], tool_choice=choice, **given)
    formed, called = openai_server.requests
    named = {"name": "place", "schema": {}, "strict": True}
    assert formed["response_format"] == {"type": "json_schema", "json_schema": named}
    assert called["tool_choice"] == {"type": "function", "function": {"name": "weather_of"}}


TURNS = 20


@pytest.mark.slow
def test_the_model_is_asked_as_for_chat_completions(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Twenty turns, with images and tools: turn for turn the same prompt."""
    openai_server.otherwise(lambda request: Reply(f"Heard it, {len(request['messages'])}."))

    def picture(n: int) -> str | None:
        return PIXEL if n % 7 == 3 else None

    with serving(tmp_path / "chat", openai_server) as (url, _), open_client(url) as client:
        said: list[Any] = [{"role": "developer", "content": "Be brief."}]
        for n in range(TURNS):
            content: Any = f"Sentence {n} of the boat."
            if url_ := picture(n):
                content = [
                    {"type": "text", "text": content},
                    {"type": "image_url", "image_url": {"url": url_}},
                ]
            said.append({"role": "user", "content": content})
            tool = {
                "type": "function",
                "function": {k: v for k, v in WEATHER.items() if k != "type"},
            }
            reply = client.chat.completions.create(model="topicloom", messages=said, tools=[tool])  # type: ignore[list-item]
            said.append({"role": "assistant", "content": reply.choices[0].message.content})
    expected = [r.copy() for r in openai_server.requests]
    openai_server.requests.clear()
    with serving(tmp_path / "responses", openai_server) as (url, _), open_client(url) as client:
        previous: str | None = None
        for n in range(TURNS):
            content = f"Sentence {n} of the boat."
            if url_ := picture(n):
                blocks = [
                    {"type": "input_text", "text": content},
                    {"type": "input_image", "image_url": url_},
                ]
                content = [{"role": "user", "content": blocks}]
            given: Any = {"previous_response_id": previous} if previous else {}
            answer = client.responses.create(
                model="topicloom", input=content, instructions="Be brief.", tools=[WEATHER], **given
            )
            previous = answer.id
    assert len(openai_server.requests) == len(expected) == TURNS
    for ours, theirs in zip(openai_server.requests, expected, strict=True):
        assert ours["messages"] == theirs["messages"]
        assert ours["tools"] == theirs["tools"]
