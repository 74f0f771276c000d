"""OpenAI's Responses: what a client asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, Field

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
from topicloom_app.serve.response_events import ResponseWriter
from topicloom_app.serve.turns import AnswerReference, HistoryMessage, TurnRequest


class _Tool(BaseModel):
    """A function that the client runs; tools that OpenAI runs itself are not there."""

    type: Literal["function"]
    name: str
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
    store: bool | None = None
    stream: bool | None = None
    tools: list[_Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | _Choice | None = None
    text: _Text | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None

    def read_form(self) -> dict[str, Any]:
        """The form that the reply is to have, beyond what a model does by itself."""
        choice, text = self.tool_choice, self.text
        named = choose_function(choice.name) if isinstance(choice, _Choice) else choice
        return make_form(self.tools, named, text.format.read() if text and text.format else None)


class _Item(BaseModel):
    """A message or a part of one in a request's input."""

    type: Literal[
        "message", "function_call", "function_call_output", "item_reference", "reasoning"
    ] = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[dict[str, Any]] | None = None
    id: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: str | list[dict[str, Any]] = ""


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
    instructions = [_read_content(item.content) for item in read if item.role in INSTRUCTING]
    instructions.insert(0, request.instructions or "")
    tools = [] if request.tool_choice == "none" else request.tools or []
    turn = TurnRequest(
        model=request.model,
        messages=list(_read_items(read)),
        instructions="\n\n".join(filter(None, map(_get_words, instructions))),
        tools=tuple(tool.read() for tool in tools),
        form=request.read_form(),
        stream=bool(request.stream),
        previous=strip_kind(request.previous_response_id or ""),
        recorded=request.store is not False,
        owner=owner,
    )
    turn = place_turn(turn, headers, request.metadata, request.user)
    return turn, ResponseWriter(turn, request.model_dump(mode="json"))


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
            case _Item(type="function_call"):
                calls.append(read_call(item.call_id, item.name, item.arguments))
            case _Item(type="message", role="user"):
                yield from take()
                yield (last := HumanMessage(_read_content(item.content)))
            case _Item(type="function_call_output"):
                yield from take()
                content = _read_content(item.output)
                yield (last := ToolMessage(content, tool_call_id=item.call_id))
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
    match block.get("type"):
        case "input_text" | "output_text" | "text" | "refusal" as kind:
            return {
                "type": "text",
                "text": str(block.get("refusal" if kind == "refusal" else "text", "")),
            }
        case "input_image":
            detail = {"detail": block["detail"]} if block.get("detail") else {}
            return {"type": "image_url", "image_url": {"url": block.get("image_url"), **detail}}
        case "input_file":
            known = ("file_id", "file_data", "filename")
            return {"type": "file", "file": {k: block[k] for k in known if block.get(k)}}
        case "input_audio":
            return {"type": "input_audio", "input_audio": block.get("input_audio")}
        case other:
            raise InputError(f"input: a content block of type {other!r} is not supported here")


def _get_words(content: Any) -> str:
    return content if isinstance(content, str) else get_text(HumanMessage(content))


def strip_kind(id_: str) -> str:
    """The id of an answer in that of a response or of an item: `resp_…`, `msg_…`, `fc_1_…`."""
    return id_.rpartition("_")[2]
