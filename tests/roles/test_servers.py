"""Servers of one's own: their context, what they refuse, and an end to what nobody waits for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from openai_behaviours import Hang, Reply, Request, Status, Usage
from openai_server import OpenAIServer
from tables import each_row

from topicloom import READER, ReadRequest, StoredMessage, Topic, TopicWindow
from topicloom.context.prefix import PrefixMeter
from topicloom.context.windows import cache_point
from topicloom.effects import arun_step, run_step
from topicloom.roles.calls import ask_role
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.roles.reader import ChatReader
from topicloom.roles.servers import Server, find_server

READ = "<topic_result><relevance_score>0.2</relevance_score></topic_result>"
SAID = [
    StoredMessage(seq=n, role="user", text=f"word{n} " * 40, time="2026-03-01T10:00:00+00:00")
    for n in range(1, 200)
]
TOPIC = TopicWindow(Topic(id="t1", name="Oak"), SAID[:150])
ASKED = ReadRequest("s", [TOPIC], SAID[150:], "How deep?", "en")
ways = pytest.mark.parametrize("how", ["sync", "async"])


def chat(server: OpenAIServer, name: str, **options: Any) -> Chat:
    given: dict[str, Any] = {"timeout": 6, "max_retries": 2, **options}
    deadline = given.pop("deadline", None)
    model = open_model(f"openai:{name}", base_url=server.base_url, api_key="k", **given)
    return Chat.of(model, PrefixMeter(), window=64_000, deadline=deadline)


def length(request: Request) -> int:
    return sum(len(m["content"]) for m in request["messages"])


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.slow
def test_no_request_begins_after_the_turn_has_gone_on(
    openai_server: OpenAIServer, how: str
) -> None:
    drive: Any = run_step if how == "sync" else lambda step: asyncio.run(arun_step(step))
    openai_server.then(Reply(READ))  # so that a client is at hand, and time is the server's alone
    drive(ask_role("reader", ChatReader(chat(openai_server, f"hangs-{how}")), ASKED, "t1"))
    openai_server.otherwise(Hang(30))
    reader = ChatReader(chat(openai_server, f"hangs-{how}", deadline=2))
    value, call = drive(ask_role("reader", reader, ASKED, "t1"))
    assert (value, call.failure) == (None, "no answer within 2 s")
    time.sleep(3)  # its client would have asked again by now
    assert len(openai_server.requests) == 2


def test_an_overloaded_server_is_not_waited_for_past_the_deadline(
    openai_server: OpenAIServer,
) -> None:
    openai_server.otherwise(Status(429, retry_after=60))
    reader = ChatReader(chat(openai_server, "busy", deadline=5))
    _, call = run_step(ask_role("reader", reader, ASKED, "t1"))
    assert "429" in (call.failure or "")
    assert len(openai_server.requests) == 1


@pytest.mark.slow
def test_a_model_that_always_streams_goes_on_to(openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Reply(READ))
    asked = chat(openai_server, "streaming")
    for model in (asked.model, asked.model.model_copy(update={"streaming": True})):
        ChatReader(replace(asked, model=model)).call(ASKED)
    assert [bool(r.get("stream")) for r in openai_server.requests] == [False, True]


@pytest.mark.parametrize(
    "listed", [{"meta": {"n_ctx": 4_096, "n_ctx_train": 131_072}}, {"max_model_len": 4_096}]
)
def test_the_context_is_asked_for_once(openai_server: OpenAIServer, listed: dict[str, Any]) -> None:
    name = f"lists-{min(listed)}"
    openai_server.models = [{"id": "other", "max_model_len": 1}, {"id": name, **listed}]
    one, other = chat(openai_server, name), chat(openai_server, name)
    assert (one.size, other.size) == (4_096, 4_096)
    assert openai_server.listed == 1


@pytest.mark.parametrize("models", [None, [], [{"id": "a"}, {"id": "b"}], [{"id": "a"}]])
def test_a_server_may_say_nothing(openai_server: OpenAIServer, models: Any) -> None:
    openai_server.models = models
    assert chat(openai_server, f"mute-{models}").size == 64_000


@each_row(
    "words",
    [
        "request (12031 tokens) exceeds the available context size (8192 tokens), try increasing",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "the model is loaded with context length of only 8192 tokens, which is not enough",
        "'max_tokens' is too large: 500. This model's maximum context length is 8,192 tokens",
        "prompt is too long: 12031 tokens > 8192 maximum",
    ],
)
def test_an_error_names_the_context(words: str) -> None:
    server, error = Server(), ValueError(words)
    assert server.learn(error, 32_000)
    assert server.context == 8_192
    assert server.learn(error, 32_000), "another call had a prompt of the same size"
    assert server.context == 8_192
    assert server.learn(error, 8_192), "it was counted too short"
    assert server.context == 6_144
    assert not server.learn(ValueError("out of paper"), 6_144)
    sizes = [size for size in (6_144, 4_608, 4_096) if server.learn(error, size)]
    assert (sizes, server.context) == ([6_144, 4_608], 4_096), "what cannot shrink ends at a half"


@pytest.mark.parametrize("takes", [True, False])
def test_a_reader_can_name_no_strangers(openai_server: OpenAIServer, takes: bool) -> None:
    """One's own server is asked for JSON by a schema with the ids; one that refuses, for tags."""
    if not takes:
        openai_server.then(Status(400, message="'response_format' is not supported"))
    said = {"relevance_score": 0.7, "referenced_messages": ["m3", "m1"], "summary": ""}
    openai_server.otherwise(Reply(json.dumps(said)) if takes else Reply(READ))
    reader = ChatReader(chat(openai_server, f"schema-{takes}"))
    (value,) = reader.call(replace(ASKED, windows=[replace(TOPIC, messages=SAID[:3])])).value
    reader.call(ASKED)
    assert [q.id for q in value.quotes] == (["m3", "m1"] if takes else [])
    form = openai_server.requests[0]["response_format"]["json_schema"]["schema"]["properties"]
    fields = form["topics"]["items"]["properties"]
    assert fields["referenced_messages"]["items"]["enum"] == ["m1", "m2", "m3"]
    assert fields["topic"]["enum"] == ["t1"]
    later = ["response_format" in r for r in openai_server.requests[1:]]
    assert later == ([True] if takes else [False, False])
    for request in openai_server.requests:
        system = request["messages"][0]["content"]
        assert ("JSON" in system, "<topic_result" in system) == (
            ("response_format" in request, "response_format" not in request)
        ), "one form is asked for, never two"


@pytest.mark.slow
@ways
def test_a_prompt_that_is_too_long_is_made_smaller(openai_server: OpenAIServer, how: str) -> None:
    refusal = "request (12031 tokens) exceeds the available context size (4096 tokens)"
    openai_server.then(Status(400, message=refusal))
    openai_server.otherwise(Reply(READ))
    reader = ChatReader(chat(openai_server, f"small-{how}"))
    for _ in range(2):
        answer = reader.call(ASKED) if how == "sync" else asyncio.run(reader.acall(ASKED))
        assert [r.score for r in answer.value] == [0.2]
    first, *rest = map(length, openai_server.requests)
    assert len(rest) == 2
    assert all(size < first / 2 for size in rest)


@pytest.mark.slow
def test_answers_are_limited_by_role(openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Reply(READ))
    small = replace(chat(openai_server, "limited"), answer=READER.answer_tokens)
    ChatReader(small).call(ASKED)
    ChatReader(replace(small, window=2_000)).call(ASKED)
    assert [r["max_tokens"] for r in openai_server.requests] == [1_500, 500]


@pytest.mark.slow
def test_a_limit_that_is_refused_is_not_sent_again(openai_server: OpenAIServer) -> None:
    openai_server.then(Status(400, message="Unsupported parameter: 'max_tokens'"))
    openai_server.otherwise(Reply(READ))
    ChatReader(replace(chat(openai_server, "refuses"), answer=500)).call(ASKED)
    assert ["max_tokens" in r for r in openai_server.requests] == [True, False]


@pytest.mark.slow
def test_a_model_that_thinks_first_is_not_limited(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("<think>Is it the oak table, or", finish_reason="length"))
    openai_server.otherwise(Reply(READ, Usage(9, 9)))
    reader = ChatReader(replace(chat(openai_server, "thinks"), answer=500))
    assert reader.call(ASKED).remarks == (
        "asked again: no relevance score in an answer of 30 characters",
    )
    reader.call(ASKED)
    assert ["max_tokens" in r for r in openai_server.requests] == [True, False, False]


PROMPT: Sequence[BaseMessage] = [
    SystemMessage("Read."),
    cache_point("one"),
    HumanMessage("two"),
    AIMessage("three"),
    HumanMessage("four"),
]


@pytest.mark.slow
def test_strict_chat_templates_get_one_message_in_turn(openai_server: OpenAIServer) -> None:
    openai_server.then(Status(400, message="Conversation roles must alternate user/assistant/..."))
    openai_server.otherwise(Reply(READ))
    ChatReader(chat(openai_server, "strict")).call(ASKED)
    first, second = ([m["role"] for m in r["messages"]] for r in openai_server.requests)
    assert first.count("user") > 1
    assert second == ["system", "user"]
    server = find_server(chat(openai_server, "strict").model)
    shaped = server.shape(PROMPT)
    assert [(m.type, m.text) for m in shaped] == [
        ("system", "Read."),
        ("human", "one\n\ntwo"),
        ("ai", "three"),
        ("human", "four"),
    ]
    longer = server.shape([*PROMPT, HumanMessage("five")])
    assert longer[-1].text.startswith(shaped[-1].text), "what a cache knows is a prefix still"


@pytest.mark.slow
def test_a_template_without_a_system_role_is_told_by_the_user(openai_server: OpenAIServer) -> None:
    openai_server.then(Status(400, message="System role not supported"))
    openai_server.otherwise(Reply(READ))
    reader = ChatReader(chat(openai_server, "roleless"))
    reader.call(ASKED)
    reader.call(ASKED)
    roles = [[m["role"] for m in r["messages"]] for r in openai_server.requests]
    assert [set(r) for r in roles] == [{"system", "user"}, {"user"}, {"user"}]
    assert len(roles[1]) == 1


@pytest.mark.parametrize(
    "words",
    [
        "System message must be at the beginning.",
        "Received multiple non-consecutive system messages.",
    ],
)
def test_where_only_the_first_may_be_the_system_s_the_user_says_later_ones(
    words: str,
) -> None:
    server = Server()
    prompt = [*PROMPT, SystemMessage("Be brief."), HumanMessage("five")]
    assert server.shape(prompt) == prompt
    assert server.learn(ValueError(words), 8_000)
    assert server.shape(prompt) == [*PROMPT, HumanMessage("Be brief."), HumanMessage("five")]
    assert not server.learn(ValueError(words), 8_000)
