"""OpenAI's chat completions: what a client asks for, and how it is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import time
from typing import Annotated, Any, Literal, Self

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, Field, model_validator

from topicloom.hosting import get_text
from topicloom_app.serve.requests import (
    INSTRUCTING,
    Stop,
    join_texts,
    make_form,
    make_reply,
    parse_body,
    place_turn,
    read_call,
    read_stop,
)
from topicloom_app.serve.turns import Answered, Tokens, TurnRequest
from topicloom_app.serve.web import write_event

_Data = dict[str, Any]


class _Function(BaseModel):
    name: str
    arguments: str | dict[str, Any] | None = ""
    """Its JSON; some clients send the object itself."""

    def read(self, id_: str) -> Any:
        """The call as LangChain has it."""
        return read_call(id_, self.name, self.arguments)


class _Call(BaseModel):
    id: str
    function: _Function


class _Url(BaseModel, extra="allow"):
    url: str


class _Block(BaseModel, extra="allow"):
    """A part of a message. One without a type is read as what it looks like."""

    type: Literal["text", "refusal", "image_url", "input_audio", "file"]
    text: str | None = None
    refusal: str | None = None
    image_url: _Url | None = None
    input_audio: dict[str, Any] | None = None
    file: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_type(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("type") is not None:
            return given
        return given | {"type": next((part for part in _PARTS if part in given), None)}

    @model_validator(mode="after")
    def _check_part(self) -> Self:
        if getattr(self, self.type) is None:
            raise ValueError(f"a part of type {self.type!r} needs {self.type!r}")
        return self

    def read(self) -> _Data:
        """The part as LangChain has it."""
        if self.type == "refusal":
            return {"type": "text", "text": self.refusal}
        return self.model_dump(exclude_none=True)


_PARTS = ("text", "refusal", "image_url", "input_audio", "file")


class _Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Block] | None = None
    name: str | None = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None

    def read(self) -> AnyMessage:
        """The message as LangChain has it."""
        given = self.content if isinstance(self.content, list) else []
        content: Any = join_texts([b.read() for b in given]) if given else self.content or ""
        if self.role == "assistant":
            calls = [c.function.read(c.id) for c in self.tool_calls or ()]
            return make_reply(content, calls, self.name)
        if self.role == "tool":
            return ToolMessage(content, tool_call_id=self.tool_call_id or "", name=self.name)
        return HumanMessage(content, name=self.name)


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
    max_completion_tokens: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    stop: Stop | list[Stop] | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None
    modalities: list[Literal["text"]] | None = None
    audio: None = None
    web_search_options: None = None
    response_format: _Format | None = None
    functions: Annotated[list[Any], Field(max_length=0)] | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None

    def read_form(self) -> dict[str, Any]:
        """The form that the reply is to have, beyond what a model does by itself."""
        return make_form(self.tools, **self.model_dump(include={"tool_choice", "response_format"}))


def read_chat(
    body: bytes, headers: Mapping[str, str], owner: str = ""
) -> tuple[TurnRequest, ChatWriter]:
    """The turn that a request asks for; the sessions of an `owner` are apart from others'.

    Raises:
        ValidationError: The request is not as the protocol has it.
        InputError: It is no JSON, or there is nothing to answer.
    """
    request = _Request.model_validate(parse_body(body))
    instructions = [m.read() for m in request.messages if m.role in INSTRUCTING]
    messages = [m.read() for m in request.messages if m.role not in INSTRUCTING]
    tools = [tool.model_dump() for tool in request.tools or ()]
    turn = TurnRequest(
        model=request.model,
        messages=messages,
        instructions="\n\n".join(map(get_text, instructions)),
        tools=() if request.tool_choice == "none" else tuple(tools),
        form=request.read_form(),
        tokens=request.max_completion_tokens or request.max_tokens,
        stop=read_stop(request.stop),
        stream=bool(request.stream),
        owner=owner,
    )
    turn = place_turn(turn, headers, request.metadata, request.user)
    usage = bool(request.stream_options and request.stream_options.include_usage)
    return turn, ChatWriter(turn, usage)


class ChatWriter:
    """Writes the answer to one request."""

    def __init__(self, turn: TurnRequest, usage: bool) -> None:
        """For a turn; `usage` is True if the stream is to end with what it cost."""
        self._usage = usage
        self._frame: dict[str, Any] = {
            "id": f"chatcmpl-{turn.id}",
            "created": int(time()),
            "model": turn.model,
        }

    def write_whole(self, answered: Answered) -> _Data:
        """The answer in one piece."""
        calls = {"tool_calls": list(_write_calls(answered))} if answered.calls else {}
        message = {"role": "assistant", "content": answered.text or None, **calls}
        choice = {"index": 0, "finish_reason": _find_end(answered), "logprobs": None}
        usage = _write_usage(answered.tokens)
        kind = {"object": "chat.completion"}
        return {**kind, "choices": [choice | {"message": message}], "usage": usage, **self._frame}

    def begin(self) -> str:
        """No events: the first piece is the beginning."""
        return ""

    def write_piece(self, text: str) -> str:
        """The event of a piece."""
        return self._write_chunk({"role": "assistant", "content": text})

    def end(self, answered: Answered) -> str:
        """Calls of tools, the end, and the usage if it was asked for."""
        events = ""
        if answered.calls:
            calls = [{"index": n} | call for n, call in enumerate(_write_calls(answered))]
            events += self._write_chunk({"role": "assistant", "tool_calls": calls})
        events += self._write_chunk({}, _find_end(answered))
        if self._usage:
            events += self._write([], _write_usage(answered.tokens))
        return events + "data: [DONE]\n\n"

    def fail(self, status: int, message: str) -> str:
        """The event of an error."""
        return write_event(write_error(status, message))

    def _write_chunk(self, delta: _Data, end: str | None = None) -> str:
        return self._write([{"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}])

    def _write(self, choices: list[_Data], usage: _Data | None = None) -> str:
        counted = {"usage": usage} if self._usage else {}
        kind = {"object": "chat.completion.chunk"}
        return write_event({**kind, "choices": choices, **counted, **self._frame})


def _write_calls(answered: Answered) -> Iterator[_Data]:
    for id_, name, arguments in answered.calls:
        yield {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def _find_end(answered: Answered) -> str:
    if answered.calls:
        return "tool_calls"
    return "length" if answered.cut else "stop"


def _write_usage(tokens: Tokens) -> _Data:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


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
