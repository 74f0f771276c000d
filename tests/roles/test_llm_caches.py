"""What caches are told: Anthropic's, OpenAI's, and nobody else's."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import Field, SecretStr
from tables import each_row

from topicloom import (
    ReadRequest,
    ReplyRequest,
    RewriteRequest,
    StoredMessage,
    Topic,
    TopicWindow,
    UnusableAnswerError,
)
from topicloom.context.prefix import PrefixMeter
from topicloom.context.windows import cache_point
from topicloom.roles.chat import Chat
from topicloom.roles.prompt_caches import find_breakpoints, with_cache_hints
from topicloom.roles.reader import ChatReader
from topicloom.roles.responder import ChatResponder
from topicloom.roles.rewriter import ChatRewriter

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


def marked(messages: list[BaseMessage], model: BaseChatModel) -> list[BaseMessage]:
    """The messages as they are sent."""
    return with_cache_hints(messages, model, "s", "main").messages


def marks(messages: list[BaseMessage]) -> list[int]:
    """Numbers of the messages that carry a mark on their last block."""
    return [
        n
        for n, m in enumerate(messages, start=1)
        if isinstance(m.content, list) and "cache_control" in m.content[-1]
    ]


def test_other_models_get_the_prompt_as_it_is() -> None:
    messages = prompt()
    found = with_cache_hints(messages, Listening(), "s", "main")
    assert found.options == {}
    assert all(a is b for a, b in zip(found.messages, messages, strict=True))


def test_the_end_of_what_lasts_is_marked() -> None:
    messages = [*prompt()[:3], cache_point("a topic"), HumanMessage("four"), HumanMessage("five")]
    assert find_breakpoints(messages) == [1, 4, 6]
    assert find_breakpoints([*messages, cache_point("another"), HumanMessage("six")]) == [1, 7, 8]
    assert find_breakpoints(messages[:4]) == [1, 4]
    assert marks(marked(messages, Anthropics())) == [1, 4, 6]


OK = {"type": "output_text", "text": "ok", "annotations": []}
SAID = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}}],
    "output": [{"type": "message", "id": "m", "role": "assistant", "content": [OK]}],
}
"""An answer of both endpoints: the client takes the newer one for some models."""


def asked_of_openai(name: str, window: str = "main", **options: Any) -> dict[str, Any]:
    """The request that OpenAI's client sends for a prompt with an end of what lasts."""
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"id": "1", "model": name, **SAID})

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        model = ChatOpenAI(model=name, api_key=SecretStr("k"), http_client=client, **options)
        messages = [SystemMessage("be kind"), cache_point("a topic"), HumanMessage("hello")]
        ready = with_cache_hints(messages, model, "s", window)
        assert model.invoke(ready.messages, **ready.options).text == "ok"
    (body,) = bodies
    body["messages"] = body.pop("input", None) or body["messages"]
    return dict(body)


def told(body: dict[str, Any]) -> list[str]:
    """The texts of a request that carry a mark."""
    blocks = [m["content"][0] for m in body["messages"] if isinstance(m["content"], list)]
    key = "prompt_cache_breakpoint"
    return [b["text"] for b in blocks if b.get(key) == {"mode": "explicit"}]


@each_row("name", ["gpt-5.6", "gpt-5.6-sol", "gpt-5.10", "gpt-6-2027-01-01"])
def test_openai_is_told_but_of_the_newest_message(name: str) -> None:
    body = asked_of_openai(name)
    assert told(body) == ["be kind", "a topic"]
    assert body["messages"][-1]["content"] == "hello"


def test_openai_is_told_of_the_newest_too_where_nothing_else_does() -> None:
    options: dict[str, Any] = {"prompt_cache_options": {"mode": "explicit"}}
    assert told(asked_of_openai("gpt-5.6", **options)) == ["be kind", "a topic", "hello"]


@each_row("name", ["gpt-5", "gpt-5-2025-08-07", "gpt-4.1", "gpt-4o", "o4-mini"])
def test_openai_s_older_models_get_a_key_and_no_marks(name: str) -> None:
    body = asked_of_openai(name)
    assert [m["content"] for m in body["messages"]] == ["be kind", "a topic", "hello"]
    assert body["prompt_cache_key"]


def test_a_window_has_a_key_of_its_own_and_names_no_session() -> None:
    one, same, other = (
        asked_of_openai("gpt-5.6", window)["prompt_cache_key"]
        for window in ("reader:t1", "reader:t1", "reader:t2")
    )
    assert one == same != other
    assert len(one) <= 64
    assert re.fullmatch(r"topicloom-[0-9a-f]{32}", one)


def test_a_key_that_the_application_has_chosen_stays() -> None:
    options: dict[str, Any] = {"model_kwargs": {"prompt_cache_key": "mine"}}
    assert asked_of_openai("gpt-5.6", **options)["prompt_cache_key"] == "mine"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "https://api.openai.com.example.org/v1"])
def test_other_servers_of_openai_s_protocol_are_told_nothing(url: str) -> None:
    body = asked_of_openai("gpt-5.6", base_url=url)
    assert body["messages"][0]["content"] == "be kind"
    assert "prompt_cache_key" not in body


def test_openai_in_europe_is_openai() -> None:
    assert told(asked_of_openai("gpt-5.6", base_url="https://eu.api.openai.com/v1"))


@pytest.mark.parametrize("model", [Anthropics(), Derived()])
def test_system_and_newest_message_are_marked(model: BaseChatModel) -> None:
    messages = prompt()
    found = marked(messages, model)
    assert marks(found) == [1, 4]
    assert found[3].content == [{"type": "text", "text": "three", **MARK}]
    assert [m.content for m in messages] == ["be kind", "one", "two", "three"]


def test_a_message_without_text_is_passed_over() -> None:
    messages = [HumanMessage("look"), ToolMessage("", tool_call_id="1")]
    assert find_breakpoints(messages) == [1]
    assert find_breakpoints([HumanMessage("")]) == []
    assert marked([HumanMessage("")], Anthropics())[0].content == ""


def test_of_several_blocks_the_last_text_carries_the_mark() -> None:
    image = {"type": "image", "url": "https://example.org/oak.png"}
    content: list[str | dict[Any, Any]] = ["see", {"type": "text", "text": "this"}, image]
    (found,) = marked([HumanMessage(content)], Anthropics())
    assert found.content == [
        {"type": "text", "text": "see"},
        {"type": "text", "text": "this", **MARK},
        image,
    ]
    assert content[1] == {"type": "text", "text": "this"}


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_main_model_is_sent_marks_and_may_answer_in_one_piece(how: str) -> None:
    model = Anthropics()
    role = ChatResponder(model)
    request = ReplyRequest("s", prompt(), [], "three", [], "en")

    async def chunks() -> list[Any]:
        return [chunk async for chunk in role.astream(request)]

    (chunk,) = list(role.stream(request)) if how == "sync" else asyncio.run(chunks())
    assert chunk.content == "<query>oak</query>"
    assert marks(model.heard[0]) == [1, 4]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_inner_roles_send_marks_too(how: str) -> None:
    model = Anthropics()
    role = ChatRewriter(Chat.of(model, PrefixMeter(), window=8_000))
    request = RewriteRequest("s", "and that one?", [], "en")
    if how == "sync":
        role.call(request)
    else:
        asyncio.run(role.acall(request))
    assert marks(model.heard[0]) == [1, len(model.heard[0])]


def test_each_topic_s_prompt_grows_at_its_end() -> None:
    model = Listening()
    reader = ChatReader(Chat.of(model, PrefixMeter(), window=12_000))
    said = [
        StoredMessage(seq=n, role="user", text=f"word{n} " * 20, time="2026-03-01T10:00:00+00:00")
        for n in range(1, 80)
    ]
    windows = [("s", "t1", 59), ("s", "t2", 56), ("other", "t1", 53)]
    for more in (0, 2):
        for session, topic, last in windows:
            tail = said[20 : last + more]
            shown = TopicWindow(Topic(id=topic, name=topic), said[:4])
            request = ReadRequest(session, [shown], tail, "?", "en")
            with pytest.raises(UnusableAnswerError):
                reader.call(request)
    prompts = [p for p in model.heard if not isinstance(p[-2], AIMessage)]
    assert len(prompts) == 6
    assert len({p[5].text for p in prompts}) == 3
    for first, then in zip(prompts[:3], prompts[3:], strict=True):
        assert then[: len(first)] == first
