"""Marks for a cache that has to be told: for Anthropic's models, and for nobody else's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

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
