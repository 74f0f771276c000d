"""Anthropic's messages: what a client asks for, and how it is answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, Field, TypeAdapter

from topicloom import InputError
from topicloom_app.serve.requests import (
    Stop,
    choose_function,
    join_texts,
    load_json,
    make_form,
    make_reply,
    parse_body,
    place_turn,
    read_call,
    read_stop,
)
from topicloom_app.serve.turns import Answered, Tokens, TurnRequest
from topicloom_app.serve.web import write_event

_Block = dict[str, Any]
_THOUGHTS = ("thinking", "redacted_thinking")
"""Blocks of another model's thoughts, which nobody here can read."""


class _Message(BaseModel):
    role: Literal["user", "assistant", "system"]
    content: str | list[_Block]

    def read(self) -> Iterator[AnyMessage]:
        """The messages as LangChain has them: results of tools stand before what the user says."""
        blocks = _list_blocks(self.content)
        if self.role == "assistant":
            calls = [
                read_call(str(b.get("id")), str(b.get("name")), b.get("input"))
                for b in blocks
                if b.get("type") == "tool_use"
            ]
            yield make_reply(_read_content(blocks), calls)
            return
        results = [b for b in blocks if b.get("type") == "tool_result"]
        for block in results:
            content = _read_content(_list_blocks(_CONTENT.validate_python(block.get("content"))))
            status: Any = "error" if block.get("is_error") else "success"
            yield ToolMessage(content, tool_call_id=str(block.get("tool_use_id")), status=status)
        content = _read_content(blocks)
        if content or not results:
            yield HumanMessage(content)


class _Tool(BaseModel):
    """A tool that the client runs; those that Anthropic runs itself are not there."""

    type: Literal["custom"] | None = None
    name: str
    description: str | None = None
    input_schema: dict[str, Any]

    def read(self) -> dict[str, Any]:
        """The tool as OpenAI writes it."""
        described = {"description": self.description} if self.description else {}
        function = {"name": self.name, **described, "parameters": self.input_schema}
        return {"type": "function", "function": function}


class _Choice(BaseModel):
    type: Literal["auto", "any", "tool", "none"]
    name: str = ""


class _Metadata(BaseModel, extra="allow"):
    user_id: str | None = None


class _Request(BaseModel):
    """A request; what is not named here, such as a temperature, the server's settings decide."""

    model: str
    messages: list[_Message] = Field(min_length=1)
    system: str | list[_Block] | None = None
    stream: bool | None = None
    tools: list[_Tool] | None = None
    tool_choice: _Choice | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    stop_sequences: list[Stop] | None = None
    mcp_servers: Annotated[list[Any], Field(max_length=0)] | None = None
    metadata: _Metadata | None = None

    def read_form(self) -> dict[str, Any]:
        """The form that the reply is to have, beyond what a model does by itself."""
        match self.tool_choice:
            case _Choice(type="any"):
                return make_form(self.tools, "required")
            case _Choice(type="tool", name=name):
                return make_form(self.tools, choose_function(name))
        return {}


def read_messages_request(
    body: bytes, headers: Mapping[str, str], owner: str = ""
) -> tuple[TurnRequest, MessagesWriter]:
    """The turn that a request asks for; the sessions of an `owner` are apart from others'.

    Raises:
        ValidationError: The request is not as the protocol has it.
        InputError: It is no JSON, or there is nothing to answer.
    """
    request = _Request.model_validate(parse_body(body))
    instructions = [_join_texts(_list_blocks(request.system or ""))]
    instructions += [
        _join_texts(_list_blocks(m.content)) for m in request.messages if m.role == "system"
    ]
    said = [r for m in request.messages if m.role != "system" for r in m.read()]
    none = request.tool_choice is not None and request.tool_choice.type == "none"
    metadata = request.metadata or _Metadata()
    turn = TurnRequest(
        model=request.model,
        messages=said,
        instructions="\n\n".join(filter(None, instructions)),
        tools=() if none else tuple(tool.read() for tool in request.tools or ()),
        form=request.read_form(),
        tokens=request.max_tokens,
        stop=read_stop(request.stop_sequences),
        stream=bool(request.stream),
        owner=owner,
    )
    turn = place_turn(turn, headers, metadata.model_extra, metadata.user_id)
    return turn, MessagesWriter(turn)


_CONTENT: TypeAdapter[str | list[_Block] | None] = TypeAdapter(str | list[_Block] | None)


def _list_blocks(content: str | list[_Block] | None) -> list[_Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content or []


def _join_texts(blocks: Sequence[_Block]) -> str:
    return "\n".join(str(b.get("text", "")) for b in blocks if b.get("type") == "text")


def _read_content(blocks: Sequence[_Block]) -> Any:
    """The content of a message as OpenAI writes it, without calls, results and thoughts."""
    apart = (*_THOUGHTS, "tool_use", "tool_result")
    own = [b for b in blocks if b.get("type") not in apart]
    return join_texts([_read_block(b) for b in own])


def _read_block(block: _Block) -> _Block:
    match block:
        case {"text": str(text)} if block.get("type", "text") == "text":
            return {"type": "text", "text": text}
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": "image", "source": {"media_type": str(kind), "data": str(data)}}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return {"type": "text", "text": text}
        case {"type": "document", "source": {"type": "content", "content": content}}:
            return {"type": "text", "text": _read_texts(content)}
        case {"type": "document", "source": {"media_type": str(kind), "data": str(data)}}:
            file = f"data:{kind};base64,{data}"
            name = str(block.get("title") or "document.pdf")
            return {"type": "file", "file": {"filename": name, "file_data": file}}
        case {"type": "search_result", "source": str(source), "content": content}:
            head = f"{block.get('title') or ''} ({source})".strip()
            return {"type": "text", "text": f"{head}\n{_read_texts(content)}"}
    raise InputError(
        f"messages: a content block of type {block.get('type')!r} is not supported here, or not"
        " in this form"
    )


def _read_texts(content: Any) -> str:
    return _join_texts(_list_blocks(_CONTENT.validate_python(content)))


class MessagesWriter:
    """Writes the answer to one request."""

    def __init__(self, turn: TurnRequest) -> None:
        """For a turn."""
        self._model, self._id = turn.model, f"msg_{turn.id}"
        self._begun = False
        self.asked = Tokens(0, 0, 0)
        """What the request has, as its client sent it: a stream begins with that."""

    def write_whole(self, answered: Answered) -> dict[str, Any]:
        """The answer in one piece."""
        content: list[_Block] = []
        if answered.text or not answered.calls:
            content.append({"type": "text", "text": answered.text})
        content += [
            {"type": "tool_use", "id": id_, "name": name, "input": _read_arguments(arguments)}
            for id_, name, arguments in answered.calls
        ]
        end = {"stop_reason": _find_end(answered), "usage": _write_usage(answered.tokens)}
        return self._frame() | {"content": content} | end

    def begin(self) -> str:
        """The message without content."""
        return _write({"type": "message_start", "message": self._frame()})

    def write_piece(self, text: str) -> str:
        """The event of a piece."""
        events = "" if self._begun else _begin_block(0, {"type": "text", "text": ""})
        self._begun = True
        return events + _write_delta(0, {"type": "text_delta", "text": text})

    def end(self, answered: Answered) -> str:
        """The end of the text, the calls of tools, and the end of the message."""
        events = _write({"type": "content_block_stop", "index": 0}) if self._begun else ""
        for index, (id_, name, arguments) in enumerate(answered.calls, int(self._begun)):
            block = {"type": "tool_use", "id": id_, "name": name, "input": {}}
            events += _begin_block(index, block)
            delta = {"type": "input_json_delta", "partial_json": arguments}
            events += _write_delta(index, delta)
            events += _write({"type": "content_block_stop", "index": index})
        end = {"stop_reason": _find_end(answered), "stop_sequence": None}
        usage = _write_usage(answered.tokens)
        events += _write({"type": "message_delta", "delta": end, "usage": usage})
        return events + _write({"type": "message_stop"})

    def fail(self, status: int, message: str) -> str:
        """The event of an error."""
        return _write(write_error(status, message))

    def _frame(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _write_usage(self.asked),
        }


def write_error(status: int, message: str) -> dict[str, Any]:
    """An error as Anthropic's clients read it."""
    kind = _KINDS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


def write_models(names: Sequence[str]) -> dict[str, Any]:
    """The list of models."""
    ends = {"first_id": names[0], "last_id": names[-1]} if names else {}
    return {"data": [write_model(name) for name in names], "has_more": False, **ends}


def write_model(name: str) -> dict[str, Any]:
    """One of them."""
    began = "1970-01-01T00:00:00Z"
    return {"type": "model", "id": name, "display_name": name, "created_at": began}


def _find_end(answered: Answered) -> str:
    if answered.calls:
        return "tool_use"
    return "max_tokens" if answered.cut else "end_turn"


def _read_arguments(arguments: str) -> Any:
    try:
        read = load_json(arguments or "{}")
    except (ValueError, RecursionError):
        read = None
    # This protocol has no room for arguments that are no object: they are sent as they came.
    return read if isinstance(read, dict) else {"arguments": arguments}


def _write_usage(tokens: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": tokens.input - tokens.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output,
    }


def _begin_block(index: int, block: _Block) -> str:
    return _write({"type": "content_block_start", "index": index, "content_block": block})


def _write_delta(index: int, delta: _Block) -> str:
    return _write({"type": "content_block_delta", "index": index, "delta": delta})


def _write(event: Mapping[str, Any]) -> str:
    return write_event(event, str(event["type"]))
