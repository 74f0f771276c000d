"""OpenAI's Responses: what a client asks for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import time
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, Field, TypeAdapter

from topicloom import InputError
from topicloom.hosting import get_text
from topicloom_app.serve.requests import (
    INSTRUCTING,
    choose_function,
    join_texts,
    make_form,
    make_reply,
    parse_body,
    place_turn,
    read_call,
)
from topicloom_app.serve.response_events import ResponseWriter, write_usage
from topicloom_app.serve.turns import AnswerReference, HistoryMessage, Tokens, TurnRequest


class _Tool(BaseModel):
    """A tool of the client's. Those that are no functions are not there, and left out."""

    type: str
    name: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None

    def read(self) -> dict[str, Any]:
        """The tool as chat completions have it."""
        given = self.model_dump(exclude={"type"}, exclude_none=True)
        return {"type": "function", "function": given}


class _Choice(BaseModel):
    type: Literal["function"]
    name: str


class _Format(BaseModel, extra="allow"):
    type: Literal["text", "json_object", "json_schema"]

    def read(self) -> dict[str, Any]:
        """The `response_format` of chat completions."""
        if self.type != "json_schema":
            return {"type": self.type}
        return {"type": self.type, "json_schema": self.model_dump(exclude={"type"})}


class _Text(BaseModel):
    format: _Format | None = None


class _Request(BaseModel):
    """A request; what is not named here, such as a temperature, the server's settings decide."""

    model: str
    input: str | Annotated[list[dict[str, Any]], Field(min_length=1)]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: None = None
    prompt: None = None
    background: Literal[False] | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    top_logprobs: Literal[0] | None = None
    include: list[str] | None = None
    store: bool | None = None
    stream: bool | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _Choice | None = None
    text: _Text | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None

    @property
    def functions(self) -> list[_Tool]:
        """The tools that the client runs and that a model may call."""
        return [tool for tool in self.tools or () if tool.type == "function"]

    def read_form(self) -> dict[str, Any]:
        """The form that the reply is to have, beyond what a model does by itself."""
        if "message.output_text.logprobs" in (self.include or ()):
            raise InputError("include: there are no logprobs here")
        choice, text = self.tool_choice, self.text
        named = choose_function(choice.name) if isinstance(choice, _Choice) else choice
        return make_form(
            self.functions, named, text.format.read() if text and text.format else None
        )


_OUTPUT: TypeAdapter[str | list[dict[str, Any]] | None] = TypeAdapter(
    str | list[dict[str, Any]] | None
)


class _Item(BaseModel):
    """A message or a part of one in a request's input; items of other kinds are passed over."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[dict[str, Any]] | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    action: dict[str, Any] | None = None
    output: Any = None
    encrypted_content: str | None = None

    @property
    def call(self) -> str:
        """What a call is known by to its output."""
        return self.call_id or self.id or ""

    @property
    def given(self) -> str:
        """The arguments of a call, as JSON: tools of other kinds take a text or an action."""
        given = {"input": self.input} if self.input is not None else self.action
        return json.dumps(given) if given is not None else self.arguments or ""


def read_response_request(
    body: bytes, headers: Mapping[str, str], owner: str = ""
) -> tuple[TurnRequest, ResponseWriter]:
    """The turn that a request asks for; the sessions of an `owner` are apart from others'.

    Raises:
        ValidationError: The request is not as the protocol has it.
        InputError: It is no JSON, or there is nothing to answer.
    """
    request = _Request.model_validate(parse_body(body))
    given = request.input
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    read = [_Item.model_validate(item) for item in items]
    read, compacted = _cut_compacted(read)
    instructions = [_read_content(item.content) for item in read if item.role in INSTRUCTING]
    instructions.insert(0, request.instructions or "")
    tools = [] if request.tool_choice == "none" else request.functions
    turn = TurnRequest(
        model=request.model,
        messages=list(_read_items(read)),
        instructions="\n\n".join(filter(None, map(_get_words, instructions))),
        tools=tuple(tool.read() for tool in tools),
        form=request.read_form(),
        tokens=request.max_output_tokens,
        stream=bool(request.stream),
        previous=compacted or strip_kind(request.previous_response_id or ""),
        recorded=request.store is not False,
        owner=owner,
    )
    turn = place_turn(turn, headers, request.metadata, request.user)
    return turn, ResponseWriter(turn, request.model_dump(mode="json"))


def read_compaction(
    body: bytes, headers: Mapping[str, str], owner: str = ""
) -> tuple[TurnRequest, ResponseWriter]:
    """As `read_response_request`, of a request that wants a conversation to be made shorter.

    There is nothing to answer in it: behind the conversation stands an empty message.
    """
    given = parse_body(body)
    if isinstance(given, dict) and isinstance(given.get("input") or [], list):
        asked = {"role": "user", "content": ""}
        given = given | {"input": [*(given.get("input") or []), asked], "stream": False}
    return read_response_request(json.dumps(given).encode(), headers, owner)


def write_compaction(turn: TurnRequest, answer: str) -> dict[str, Any]:
    """The one item that stands for all that was said up to an answer, which is kept here."""
    item = {"type": "compaction", "id": f"cmp_{answer}", "encrypted_content": f"{_OURS}{answer}"}
    return {
        "id": f"resp_{turn.answer_id}",
        "object": "response.compaction",
        "created_at": int(time()),
        "output": [item],
        "usage": write_usage(Tokens(0, 0, 0)),
    }


_OURS = "topicloom_"
"""Begins the content of a compaction of ours. Nobody here can read another's."""


def _cut_compacted(items: list[_Item]) -> tuple[list[_Item], str]:
    """The items behind the last compaction of ours, and the answer that it stands for."""
    for place in reversed(range(len(items))):
        named = items[place].encrypted_content or ""
        if items[place].type == "compaction" and named.startswith(_OURS):
            return items[place + 1 :], strip_kind(named)
    return items, ""


def _read_items(items: Iterable[_Item]) -> Iterator[HistoryMessage]:
    """The messages of an input; what an assistant said and called in a row is one of them."""
    said: list[Any] = []
    calls: list[Any] = []

    def take() -> Iterator[AIMessage]:
        if said or calls:
            yield make_reply(said[0] if len(said) == 1 else "".join(map(_get_words, said)), calls)
        said.clear()
        calls.clear()

    last: HistoryMessage | None = None
    for item in items:
        match item:
            case _Item(type="message", role="assistant"):
                said.append(_read_content(item.content))
            case _Item(type="message", role="user"):
                yield from take()
                yield (last := HumanMessage(_read_content(item.content)))
            case _Item(type=kind) if kind.endswith("_call_output"):
                yield from take()
                content = _read_content(_OUTPUT.validate_python(item.output))
                yield (last := ToolMessage(content, tool_call_id=item.call))
            case _Item(type="function_call") | _Item(call_id=str()):
                calls.append(read_call(item.call, item.name or item.type, item.given))
            case _Item(type="item_reference"):
                yield from take()
                named = AnswerReference(strip_kind(item.id or ""))
                if named != last:  # words and calls of one reply are items of their own
                    yield (last := named)
            case _Item(type="message", role=None):
                raise InputError("input: a message needs a role, such as 'user'")
    yield from take()


def _read_content(content: str | Sequence[Mapping[str, Any]] | None) -> Any:
    """The content of a message as chat completions have it."""
    if content is None or isinstance(content, str):
        return content or ""
    return join_texts(list(map(_read_block, content)))


def _read_block(block: Mapping[str, Any]) -> dict[str, Any]:
    match block:
        case {"type": "refusal", "refusal": str(text)}:
            return {"type": "text", "text": text}
        case {"text": str(text)} if block.get("type", "text") in _TEXTS:
            return {"type": "text", "text": text}
        case {"type": "input_image", "image_url": str(url)}:
            detail = {"detail": block["detail"]} if block.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": url, **detail}}
        case {"type": "input_file"}:
            file = {k: block[k] for k in _FILE if isinstance(block.get(k), str)}
            if file.keys() - {"filename"}:
                return {"type": "file", "file": file}
        case {"type": "input_audio", "input_audio": {"data": str()} as audio}:
            return {"type": "input_audio", "input_audio": audio}
    raise InputError(
        f"input: a content block of type {block.get('type')!r} is not supported here, or not in"
        " this form"
    )


_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_FILE = ("file_id", "file_data", "filename")


def _get_words(content: Any) -> str:
    return content if isinstance(content, str) else get_text(HumanMessage(content))


def strip_kind(id_: str) -> str:
    """The id of an answer in that of a response or of an item: `resp_…`, `msg_…`, `fc_1_…`."""
    return id_.rpartition("_")[2]
