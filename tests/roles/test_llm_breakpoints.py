"""Marks for caches that have to be told: Anthropic's, OpenAI's newer ones, and nobody else's."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import Field, SecretStr

from topicloom.context.lasting import lasting
from topicloom.context.prefix import PrefixMeter
from topicloom.roles.base import ReplyRequest, RewriteRequest
from topicloom.roles.llm import Chat, LLMResponder, LLMRewriter
from topicloom.roles.llm.breakpoints import breakpoints, marked

MARK = {"cache_control": {"type": "ephemeral"}}


class Listening(BaseChatModel):
    """A chat model that keeps what it is sent and does not stream."""

    heard: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "listening"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.heard.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("<query>oak</query>"))])


class Anthropics(Listening):
    """The same, from the package of Anthropic's models."""

    __module__ = "langchain_anthropic.chat_models"


class Derived(Anthropics):
    """A subclass of one that lives elsewhere."""


def prompt() -> list[BaseMessage]:
    return [SystemMessage("be kind"), HumanMessage("one"), AIMessage("two"), HumanMessage("three")]


def marks(messages: list[BaseMessage]) -> list[int]:
    """Numbers of the messages that carry a mark on their last block."""
    return [
        n
        for n, m in enumerate(messages, start=1)
        if isinstance(m.content, list) and "cache_control" in m.content[-1]
    ]


def test_other_models_get_the_prompt_as_it_is() -> None:
    messages = prompt()
    sent = marked(messages, Listening())
    assert sent == messages
    assert all(a is b for a, b in zip(sent, messages, strict=True))


def test_the_end_of_what_lasts_is_marked() -> None:
    messages = [*prompt()[:3], lasting("a topic"), HumanMessage("four"), HumanMessage("five")]
    assert breakpoints(messages) == [1, 4, 6]
    assert breakpoints([*messages, lasting("another"), HumanMessage("six")]) == [1, 7, 8]
    assert breakpoints(messages[:4]) == [1, 4]
    assert marks(marked(messages, Anthropics())) == [1, 4, 6]


OK = {"type": "output_text", "text": "ok", "annotations": []}
SAID = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}}],
    "output": [{"type": "message", "id": "m", "role": "assistant", "content": [OK]}],
}
"""An answer of both endpoints: the client takes the newer one for some models."""


def sent_to_openai(name: str, **options: Any) -> list[dict[str, Any]]:
    """The messages that OpenAI's client sends of a prompt with an end of what lasts."""
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"id": "1", "model": name, **SAID})

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        model = ChatOpenAI(model=name, api_key=SecretStr("k"), http_client=client, **options)
        messages = [SystemMessage("be kind"), lasting("a topic"), HumanMessage("hello")]
        assert model.invoke(marked(messages, model)).text == "ok"
    (body,) = bodies
    return list(body.get("messages") or body["input"])


@pytest.mark.parametrize("name", ["gpt-5.6", "gpt-5.6-sol", "gpt-5.10", "gpt-6-2027-01-01"])
def test_openai_is_told_but_of_the_newest_message(name: str) -> None:
    *told, newest = sent_to_openai(name)
    for message, text in zip(told, ["be kind", "a topic"], strict=True):
        (block,) = message["content"]
        assert block["text"] == text
        assert block["prompt_cache_breakpoint"] == {"mode": "explicit"}
    assert newest["content"] == "hello"


@pytest.mark.parametrize("name", ["gpt-5", "gpt-5-2025-08-07", "gpt-4.1", "gpt-4o", "o4-mini"])
def test_openai_s_older_models_get_no_marks(name: str) -> None:
    assert [m["content"] for m in sent_to_openai(name)] == ["be kind", "a topic", "hello"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "https://api.openai.com.example.org/v1"])
def test_other_servers_of_openai_s_protocol_get_no_marks(url: str) -> None:
    assert sent_to_openai("gpt-5.6", base_url=url)[0]["content"] == "be kind"


def test_openai_in_europe_is_openai() -> None:
    (system, *_) = sent_to_openai("gpt-5.6", base_url="https://eu.api.openai.com/v1")
    assert "prompt_cache_breakpoint" in system["content"][0]


@pytest.mark.parametrize("model", [Anthropics(), Derived()])
def test_system_and_newest_message_are_marked(model: BaseChatModel) -> None:
    messages = prompt()
    sent = marked(messages, model)
    assert marks(sent) == [1, 4]
    assert sent[3].content == [{"type": "text", "text": "three", **MARK}]
    assert [m.content for m in messages] == ["be kind", "one", "two", "three"]


def test_a_message_without_text_is_passed_over() -> None:
    messages = [HumanMessage("look"), ToolMessage("", tool_call_id="1")]
    assert breakpoints(messages) == [1]
    assert breakpoints([HumanMessage("")]) == []
    assert marked([HumanMessage("")], Anthropics())[0].content == ""


def test_of_several_blocks_the_last_text_carries_the_mark() -> None:
    image = {"type": "image", "url": "https://example.org/oak.png"}
    content: list[str | dict[Any, Any]] = ["see", {"type": "text", "text": "this"}, image]
    (sent,) = marked([HumanMessage(content)], Anthropics())
    assert sent.content == [
        {"type": "text", "text": "see"},
        {"type": "text", "text": "this", **MARK},
        image,
    ]
    assert content[1] == {"type": "text", "text": "this"}


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_main_model_is_sent_marks_and_may_answer_in_one_piece(how: str) -> None:
    model = Anthropics()
    role = LLMResponder(model)
    request = ReplyRequest("s", prompt(), [], "three", [], "en")

    async def chunks() -> list[Any]:
        return [chunk async for chunk in role.astream(request)]

    (chunk,) = list(role.stream(request)) if how == "sync" else asyncio.run(chunks())
    assert chunk.content == "<query>oak</query>"
    assert marks(model.heard[0]) == [1, 4]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_inner_roles_send_marks_too(how: str) -> None:
    model = Anthropics()
    role = LLMRewriter(Chat.of(model, PrefixMeter(), window=8_000))
    request = RewriteRequest("s", "and that one?", [], "en")
    if how == "sync":
        role.call(request)
    else:
        asyncio.run(role.acall(request))
    assert marks(model.heard[0]) == [1, len(model.heard[0])]
