"""OpenAI's chat-completions protocol: what a client asks for, and how it is answered."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any, Literal
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from pydantic import BaseModel, Field

from topicloom.errors import InputError
from topicloom.state.receipt import Receipt
from topicloom.state.stored_message import get_text
from topicloom.storage.names import make_session_name

CHAT_HEADERS = (
    "x-topicloom-session",
    "x-openwebui-chat-id",
    "x-conversation-id",
    "x-chat-id",
    "x-session-id",
)
"""Headers by which clients name a chat, the first that is there counts."""
_METADATA = ("chat_id", "conversation_id", "session_id")
"""The same in a request's `metadata`."""
_TELLING = ("system", "developer")
"""Roles whose messages are instructions."""


class _Function(BaseModel):
    name: str
    arguments: str = ""


class _Call(BaseModel):
    id: str
    function: _Function


class _Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None

    def read(self) -> AnyMessage:
        """The message as LangChain has it."""
        content: Any = self.content or ""
        if isinstance(content, list) and all(block.get("type") == "text" for block in content):
            content = "\n".join(str(block.get("text", "")) for block in content)
        if self.role == "assistant":
            calls = [_read_call(call) for call in self.tool_calls or ()]
            good = [call for call in calls if call["type"] == "tool_call"]
            bad = [call for call in calls if call["type"] != "tool_call"]
            return AIMessage(content, name=self.name, tool_calls=good, invalid_tool_calls=bad)
        if self.role == "tool":
            return ToolMessage(content, tool_call_id=self.tool_call_id or "", name=self.name)
        return HumanMessage(content, name=self.name)


def _read_call(call: _Call) -> Any:
    name, text = call.function.name, call.function.arguments
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        return tool_call(name=name, args=arguments, id=call.id)
    return invalid_tool_call(name=name, args=text, id=call.id, error="no JSON object")


class _Named(BaseModel, extra="allow"):
    name: str


class _Tool(BaseModel, extra="allow"):
    type: Literal["function"] = "function"
    function: _Named


class _StreamOptions(BaseModel):
    include_usage: bool | None = None


class _Format(BaseModel, extra="allow"):
    type: Literal["text", "json_object", "json_schema"]


class _Request(BaseModel):
    """A request; what is not named here, such as a temperature, the server's settings decide."""

    model: str
    messages: list[_Message] = Field(min_length=1)
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _Tool | None = None
    n: Literal[1] | None = None
    response_format: _Format | None = None
    functions: None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None

    def read_form(self) -> dict[str, Any]:
        """The form that the reply is to have, beyond what a model does by itself."""
        form: dict[str, Any] = {}
        if isinstance(self.tool_choice, _Tool) or self.tool_choice == "required":
            if not self.tools:
                raise InputError("tool_choice asks for a call, and there are no tools")
            form = self.model_dump(include={"tool_choice"})
        if self.response_format and self.response_format.type != "text":
            form |= self.model_dump(include={"response_format"})
        return form


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, with the session that it belongs to."""

    session: str
    whole: bool
    """True if its messages are all that the session is to know; False if one who only gives a
    user's name goes on where that user's session is, if they are new."""
    model: str
    messages: Sequence[AnyMessage]
    """The conversation as the client has it."""
    instructions: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    form: dict[str, Any] = field(default_factory=dict)
    """`TurnOptions.reply_form`."""
    stream: bool = False
    usage: bool = False
    """True if the stream is to end with the usage."""
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time()))


def read_chat(body: bytes, headers: Mapping[str, str], owner: str = "") -> ChatRequest:
    """The chat that a request asks for; the sessions of an `owner` are apart from others'.

    Raises:
        ValidationError: The request is not as the protocol has it.
        InputError: It is no JSON, or there is nothing to answer.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not JSON: {error}") from error
    request = _Request.model_validate(data)
    told = [m.read() for m in request.messages if m.role in _TELLING]
    messages = [m.read() for m in request.messages if m.role not in _TELLING]
    if not messages or isinstance(messages[-1], AIMessage):
        raise InputError("there is nothing to answer: the last message has to be the user's")
    tools = [tool.model_dump() for tool in request.tools or ()]
    named, whole = _find_session(request, headers, messages)
    return ChatRequest(
        session=f"{owner}.{named}" if owner else named,
        whole=whole,
        model=request.model,
        messages=messages,
        instructions="\n\n".join(map(get_text, told)),
        tools=() if request.tool_choice == "none" else tuple(tools),
        form=request.read_form(),
        stream=bool(request.stream),
        usage=bool(request.stream_options and request.stream_options.include_usage),
    )


def _find_session(
    request: _Request, headers: Mapping[str, str], messages: Sequence[AnyMessage]
) -> tuple[str, bool]:
    given = [headers.get(name) for name in CHAT_HEADERS]
    given += [(request.metadata or {}).get(name) for name in _METADATA]
    if chat := next((str(value) for value in given if value), ""):
        return make_session_name(chat), True
    if request.user:
        return make_session_name(request.user), False
    # What nobody named is known again by how it began.
    return f"chat-{digest_histories(messages[:1])[1]}", True


_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_SPACE = re.compile(r"\s+")


def _strip_what_clients_change(text: str) -> str:
    """The text of a message without what clients change in it when they send it again.

    Thoughts are looked for up to where the last of them ends: one that is left open would be
    searched to the end of the text, once for each.
    """
    end = text.rfind("</think>") + len("</think>")
    return _SPACE.sub("", _THOUGHTS.sub("", text[:end]) + text[end:])


def digest_histories(messages: Sequence[AnyMessage]) -> list[str]:
    """Digests of a conversation's beginnings: the nth is that of its first n messages."""
    digests = [""]
    for message in messages:
        said = json.dumps([digests[-1], describe_said(message)])
        digests.append(hashlib.sha256(said.encode()).hexdigest()[:24])
    return digests


def describe_said(message: AnyMessage) -> list[Any]:
    """Equal for a message and the same as a client sends it again."""
    calls = [*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ())]
    blocks = message.content if isinstance(message.content, list) else ()
    media = [b for b in blocks if isinstance(b, dict) and "text" not in b and message.type != "ai"]
    return [
        message.type,
        _strip_what_clients_change(get_text(message)),
        [call["id"] for call in calls],
        getattr(message, "tool_call_id", ""),
        json.dumps(media, sort_keys=True, default=str),
    ]


def write_usage(receipt: Receipt) -> dict[str, Any]:
    """What a turn cost, all roles together."""
    prompt = sum(call.input_tokens for call in receipt.calls)
    completion = sum(call.output_tokens for call in receipt.calls)
    cached = sum(call.cached_tokens for call in receipt.calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def write_completion(chat: ChatRequest, reply: AIMessage, usage: dict[str, Any]) -> dict[str, Any]:
    """The answer in one piece."""
    calls = _write_calls(reply)
    message: dict[str, Any] = {"role": "assistant", "content": get_text(reply) or None}
    choice = {"index": 0, "finish_reason": _find_end(reply), "logprobs": None}
    choice["message"] = {**message, "tool_calls": calls} if calls else message
    return {**_frame(chat, "chat.completion"), "choices": [choice], "usage": usage}


def write_piece(chat: ChatRequest, text: str) -> dict[str, Any]:
    """A piece of the answer."""
    return _write_chunk(chat, {"role": "assistant", "content": text})


def write_end(
    chat: ChatRequest, reply: AIMessage, usage: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """What follows the pieces: calls of tools, the end, and the usage if it was asked for."""
    if calls := _write_calls(reply):
        numbered = [{"index": n, **call} for n, call in enumerate(calls)]
        yield _write_chunk(chat, {"role": "assistant", "tool_calls": numbered})
    yield _write_chunk(chat, {}, _find_end(reply))
    if chat.usage:
        yield {**_frame(chat, "chat.completion.chunk"), "choices": [], "usage": usage}


def write_error(status: int, message: str, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    code = _CODES.get(status)
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


_CODES = {
    401: "invalid_api_key",
    404: "not_found",
    409: "session_busy",
    413: "request_too_large",
    429: "rate_limit_exceeded",
    502: "upstream_error",
}


def write_models(names: Sequence[str]) -> dict[str, Any]:
    """The list of models."""
    return {"object": "list", "data": [write_model(name) for name in names]}


def write_model(name: str) -> dict[str, Any]:
    """One of them."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "topicloom"}


def _write_chunk(
    chat: ChatRequest, delta: dict[str, Any], end: str | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}
    usage = {"usage": None} if chat.usage else {}
    return {**_frame(chat, "chat.completion.chunk"), "choices": [choice], **usage}


def _frame(chat: ChatRequest, kind: str) -> dict[str, Any]:
    return {"id": chat.id, "object": kind, "created": chat.created, "model": chat.model}


def _write_calls(reply: AIMessage) -> list[dict[str, Any]]:
    calls = [
        (c["id"], c["name"], json.dumps(c["args"], ensure_ascii=False)) for c in reply.tool_calls
    ]
    calls += [(c["id"], c["name"] or "", c["args"] or "") for c in reply.invalid_tool_calls]
    return [
        {"id": i, "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, name, arguments in calls
    ]


def _find_end(reply: AIMessage) -> str:
    if reply.tool_calls or reply.invalid_tool_calls:
        return "tool_calls"
    reason = reply.response_metadata.get("finish_reason")
    return "length" if "cut" in reply.additional_kwargs or reason == "length" else "stop"
