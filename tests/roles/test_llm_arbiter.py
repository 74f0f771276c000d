"""The chat model as an arbiter, against a server that does what servers do."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from openai_behaviours import (
    Behaviour,
    CutStream,
    Empty,
    Garbage,
    Hang,
    Reply,
    Status,
    Usage as Reported,
)
from openai_server import OpenAIServer

from topicloom import BoundaryQuestion, Call
from topicloom.context.prefix import PrefixMeter
from topicloom.effects import arun_step, run_step
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.roles.arbiter import ChatArbiter
from topicloom.roles.calls import ask_role
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.state.language import Language

QUESTION = BoundaryQuestion(
    summary="write a snake game",
    request="Put it on a server",
    reply="the game is finished",
    prior=0.42,
    language="en",
)
ways = pytest.mark.parametrize("how", ["sync", "async"])


def chat(server: OpenAIServer, *, deadline: float = 5, retries: int = 0) -> ChatArbiter:
    model = open_model("openai:gpt-4o", base_url=server.base_url, timeout=1, max_retries=retries)
    return ChatArbiter(Chat.of(model, PrefixMeter(), deadline=deadline))


def asked(arbiter: ChatArbiter, question: BoundaryQuestion, how: str) -> tuple[float | None, Call]:
    step = ask_role("arbiter", arbiter, question)
    return run_step(step) if how == "sync" else asyncio.run(arun_step(step))


@ways
@pytest.mark.parametrize(
    ("said", "value"),
    [("YES", 1.0), ("No.", 0.0), ("<think>Is it? No...</think>\n**Yes**", 1.0), ("否", 0.0)],
)
def test_a_verdict_is_read_with_its_cost(
    openai_server: OpenAIServer, said: str, value: float, how: str
) -> None:
    openai_server.then(Reply(said, Reported(70, 3, cached=20)))
    found, call = asked(chat(openai_server), QUESTION, how)
    assert found == value
    assert (call.role, call.model, call.failure, call.remarks) == ("arbiter", "gpt-4o", None, ())
    assert (call.input_tokens, call.output_tokens, call.cached_tokens) == (70, 3, 20)
    assert call.seconds > 0


@ways
@pytest.mark.parametrize("behaviour", [Reply("I cannot say."), Empty(), Reply("yes and no")])
def test_what_is_no_verdict_leaves_the_prior_with_a_remark(
    openai_server: OpenAIServer, behaviour: Behaviour, how: str
) -> None:
    openai_server.then(behaviour)
    found, call = asked(chat(openai_server), QUESTION, how)
    assert found == 0.42
    assert call.failure is None
    assert len(call.remarks) == 1
    assert call.remarks[0].endswith("left at 0.42")
    assert len(openai_server.requests) == 1, "a boundary is not worth a second call"


@ways
@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (Status(500, message="down"), "down"),
        (Status(401), "AuthenticationError"),
        (Garbage(), "Error"),
        (CutStream(after_chunks=1), "Connection"),
    ],
)
def test_a_failure_is_no_answer(
    openai_server: OpenAIServer, behaviour: Behaviour, reason: str, how: str
) -> None:
    openai_server.then(behaviour)
    found, call = asked(chat(openai_server), QUESTION, how)
    assert found is None
    assert call.failure is not None
    assert reason in call.failure


@ways
def test_a_server_that_says_nothing_costs_no_more_than_the_deadline(
    openai_server: OpenAIServer, how: str
) -> None:
    openai_server.then(Hang(5))
    found, call = asked(chat(openai_server, deadline=0.2), QUESTION, how)
    assert found is None
    assert call.failure == "no answer within 0.2 s"


@ways
def test_an_overloaded_server_is_asked_again(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Status(429, retry_after=0.01), Reply("YES"))
    assert asked(chat(openai_server, retries=1), QUESTION, how)[0] == 1.0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_arbiter_is_sent_both_sides_of_the_boundary(
    openai_server: OpenAIServer, language: Language
) -> None:
    openai_server.then(Reply("YES"))
    chat(openai_server).call(replace(QUESTION, language=language))
    words = get_wording(language)
    messages = openai_server.requests[0]["messages"]
    assert [m["role"] for m in messages] == ["system", "user", "user", "user"]
    assert [m["content"] for m in messages] == [
        load_prompt("arbiter", language),
        f"{words.task}\n{QUESTION.summary}",
        f"{words.reply}\n{QUESTION.reply}",
        f"{words.request}\n{QUESTION.request}",
    ]


def test_a_pasted_book_is_cut(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("NO"))
    book = replace(QUESTION, summary="a " * 100_000, request="b " * 100_000)
    assert chat(openai_server).call(book).value == 0.0
    assert all(len(m["content"]) < 5_000 for m in openai_server.requests[0]["messages"])


def test_any_chat_model_will_do() -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("Yes, it goes on.")]))
    arbiter = ChatArbiter(Chat.of(model, PrefixMeter(), deadline=5))
    assert arbiter.call(QUESTION).value == 1.0
    assert arbiter.model == "GenericFakeChatModel"
