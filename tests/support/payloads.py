"""What is sent to providers, built by their own clients, and the rules by which they refuse it.

Nothing is sent: the clients build a request, and the rules are those of the providers' references
and of what their servers say. A model here plays a script and refuses as its provider does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from agents import ScriptedModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import Field, SecretStr

if TYPE_CHECKING:
    from langchain_anthropic import ChatAnthropic
    from langchain_google_genai import ChatGoogleGenerativeAI
    from langchain_openai import ChatOpenAI

Provider = Literal["chat", "responses", "anthropic", "gemini"]
Json = dict[str, Any]
KEY = SecretStr("none")


class RefusedError(Exception):
    """HTTP 400."""


def need(holds: bool, why: object) -> None:
    if not holds:
        raise RefusedError(why)


class ProviderModel(ScriptedModel):
    """Plays a script of replies in a provider's form, and refuses what that provider refuses."""

    provider: Provider = "chat"
    refused: list[str] = Field(default_factory=list)
    payloads: list[Any] = Field(default_factory=list, repr=False)

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        own = self.shared or self
        try:
            own.payloads.append(build_payload(self.provider, messages))
        except Exception as error:
            own.refused.append(f"{self.provider}: {type(error).__name__}: {error}")
            raise
        return super()._next(messages)

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        whole = self._next(messages)
        calls = [
            {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": n}
            for n, c in enumerate(whole.tool_calls)
        ]
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content=whole.content,
                id=whole.id,
                tool_call_chunks=calls,
                additional_kwargs=whole.additional_kwargs,
                response_metadata=whole.response_metadata,
                chunk_position="last",
            )
        )


def build_payload(provider: Provider, messages: Sequence[BaseMessage]) -> Any:
    """The request that a provider's client makes of messages; raises what it, or we, refuse."""
    build, check = _PROVIDERS[provider]
    payload = build(list(messages))
    json.dumps(payload, default=repr)
    check(payload)
    return payload


# The clients' packages take seconds to import, so only what uses them does. A client is made once.
@cache
def _open_chat() -> ChatOpenAI:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4.1", api_key=KEY)


@cache
def _open_responses() -> ChatOpenAI:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-5-mini", api_key=KEY, use_responses_api=True)


@cache
def _open_anthropic() -> ChatAnthropic:
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(model="claude-sonnet-4-5", api_key=KEY, max_tokens=900)


@cache
def _open_gemini() -> ChatGoogleGenerativeAI:
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(model="gemini-3-pro-preview", google_api_key=KEY)


# The builders have no public name; they are what `invoke` calls before anything is sent.
def _build_chat(messages: list[BaseMessage]) -> Any:
    return _open_chat()._get_request_payload(messages)["messages"]


def _build_responses(messages: list[BaseMessage]) -> Any:
    return _open_responses()._get_request_payload(messages)["input"]


def _build_anthropic(messages: list[BaseMessage]) -> Any:
    return _open_anthropic()._get_request_payload(messages)["messages"]


def _build_gemini(messages: list[BaseMessage]) -> Any:
    made = _open_gemini()._prepare_request(messages)
    return [content.model_dump(exclude_none=True) for content in made["contents"]]


def check_chat(messages: Sequence[Json]) -> None:
    """What OpenAI's Chat Completions refuse, and servers with a chat template."""
    said = list(messages)
    while said and said[0]["role"] in ("system", "developer"):
        said.pop(0)
    need(bool(said) and said[0]["role"] == "user", "it does not begin with the user")
    due, used = list[str](), set[str]()
    for message in said:
        role, content = message["role"], message.get("content")
        if role == "tool":
            need(message["tool_call_id"] in due, f"no call {message['tool_call_id']!r} before it")
            due.remove(message["tool_call_id"])
            continue
        need(not due, f"no results of {due}")
        need(role in ("user", "assistant"), f"a message of {role!r} in the middle")
        for call in message.get("tool_calls") or ():
            need(bool(call["id"]) and call["id"] not in used, f"call {call['id']!r} twice")
            need(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments")
            need(call["function"]["name"].replace("-", "_").isidentifier(), call["function"])
            used.add(call["id"])
            due.append(call["id"])
        need(bool(content) or bool(due) or "audio" in message, f"an empty message of {role!r}")
        types = {"text", "image_url", "input_audio", "file"} if role == "user" else {"text"}
        for block in content if isinstance(content, list) else ():
            need(block["type"] in types | {"refusal"}, f"a block of {block['type']!r} of {role}")
    need(not due, f"no results of {due}")


def check_responses(items: Sequence[Json]) -> None:
    """What OpenAI's Responses refuse. Ids of one step end alike: `rs_1`, `msg_1`, `fc_1`."""
    need(items[0].get("role") in ("user", "system", "developer"), "it begins with a reply")
    due, used = list[str](), set[str]()
    thought: str | None = None
    for place, item in enumerate(items):
        kind, id_ = item.get("type", "message"), item.get("id")
        step = id_.partition("_")[2] if id_ else None
        if kind == "reasoning":
            follows = items[place + 1].get("id") if place + 1 < len(items) else None
            need(bool(follows), f"{id_} was provided without its required following item")
            thought = step
        elif id_ and kind != "compaction":
            need(thought == step, f"{id_} was provided without its required 'reasoning' item")
        if kind == "function_call":
            need(item["call_id"] not in used, f"call {item['call_id']!r} twice")
            need(isinstance(json.loads(item["arguments"]), dict), "arguments")
            used.add(item["call_id"])
            due.append(item["call_id"])
        elif kind == "function_call_output":
            need(item["call_id"] in due, f"no call {item['call_id']!r} for its output")
            due.remove(item["call_id"])
        elif kind == "message":
            need(not due, f"no output for {due}")
            need(place == 0 or item["role"] in ("user", "assistant"), "a system message within")
            need(bool(item["content"]), "an empty message")
    need(not due, f"no output for {due}")


_OF_USER = {"text", "image", "document", "tool_result", "search_result"}
_OF_MODEL = {"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "compaction"}
_OF_MODEL |= {"web_search_tool_result"}


def check_anthropic(messages: Sequence[Json]) -> None:
    """What Anthropic's Messages refuse."""
    need(messages[0]["role"] == "user", "it does not begin with the user")
    due, used = list[str](), set[str]()
    for message in messages:
        role, content = message["role"], message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        need(bool(blocks), f"an empty message of {role}")
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        need(sorted(results) == sorted(due), f"results {results} of calls {due}")
        first = [b["type"] for b in blocks[: len(results)]]
        need(set(first) <= {"tool_result"}, "results do not come first")
        due = []
        searched = set[str]()
        for block in blocks:
            kind = block["type"]
            need(kind in (_OF_USER if role == "user" else _OF_MODEL), f"a {kind!r} of {role}")
            need(kind != "text" or bool(block["text"].strip()), "an empty text")
            need(kind != "thinking" or bool(block.get("signature")), "a thought without signature")
            if kind == "tool_use":
                need(block["id"] not in used, f"tool_use ids must be unique: {block['id']}")
                need(isinstance(block["input"], dict), "input")
                used.add(block["id"])
                due.append(block["id"])
            elif kind == "server_tool_use":
                searched.add(block["id"])
            elif kind == "web_search_tool_result":
                need(block["tool_use_id"] in searched, "a result of no search")
                searched.remove(block["tool_use_id"])
        need(not searched, f"searches without results: {searched}")
    need(not due, f"no results of {due}")


def check_gemini(contents: Sequence[Json]) -> None:
    """What Gemini refuses."""
    need(contents[0]["role"] == "user", "it does not begin with the user")
    calls = 0
    for content in contents:
        parts = content.get("parts") or []
        need(bool(parts), "no parts")
        for part in parts:
            need(bool(part.keys() - {"thought", "thought_signature"}), "an empty part")
            need(part.get("text") != "", "an empty text")
        answered = sum("function_response" in part for part in parts)
        need(answered == calls, f"{answered} responses of {calls} calls")
        calls = sum("function_call" in part for part in parts)
        need(not calls or content["role"] == "model", "a call of the user")
    need(not calls, "calls without responses")


_Build = Callable[[list[BaseMessage]], Any]
_PROVIDERS: Mapping[Provider, tuple[_Build, Callable[[Any], None]]] = {
    "chat": (_build_chat, check_chat),
    "responses": (_build_responses, check_responses),
    "anthropic": (_build_anthropic, check_anthropic),
    "gemini": (_build_gemini, check_gemini),
}
