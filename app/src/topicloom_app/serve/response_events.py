"""OpenAI's Responses: how a request is answered, in one piece or as events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from time import time
from typing import Any, Literal

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseError,
    ResponseErrorEvent,
    ResponseFailedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseInProgressEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
    ResponseUsage,
)
from openai.types.responses.response import IncompleteDetails
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails
from pydantic import BaseModel

from topicloom_app.serve.turns import Answered, Tokens, TurnRequest
from topicloom_app.serve.web import dump, write_event

_ECHOED = ("instructions", "metadata", "tool_choice", "tools", "user", "store")
"""What a response says of its request again."""


class ResponseWriter:
    """Writes the answer to one request."""

    def __init__(
        self, turn: TurnRequest, request: Mapping[str, Any], created: float | None = None
    ) -> None:
        """For a turn and the request that it was read from, now or at a point in time."""
        self._turn, self._request = turn, request
        self._created = int(time() if created is None else created)
        self._number, self._text = -1, ""
        self._begun = False

    def write_whole(self, answered: Answered) -> dict[str, Any]:
        """The answer in one piece."""
        return dump(self._write(answered))

    def begin(self) -> str:
        """That it was taken in, and goes on."""
        response = self._frame("in_progress")
        created = ResponseCreatedEvent(
            type="response.created", response=response, sequence_number=self._count()
        )
        going = ResponseInProgressEvent(
            type="response.in_progress", response=response, sequence_number=self._count()
        )
        return _write(created) + _write(going)

    def write_piece(self, text: str) -> str:
        """The events of a piece."""
        events = "" if self._begun else self._begin_message()
        self._begun, self._text = True, self._text + text
        delta = ResponseTextDeltaEvent(
            type="response.output_text.delta",
            item_id=self._name("msg"),
            output_index=0,
            content_index=0,
            delta=text,
            logprobs=[],
            sequence_number=self._count(),
        )
        return events + _write(delta)

    def end(self, answered: Answered) -> str:
        """The end of the message, the calls of tools, and the whole response once more."""
        response = self._write(answered)
        events = self._end_message(response) if self._begun else ""
        for index, item in enumerate(response.output):
            if isinstance(item, ResponseFunctionToolCall):
                events += self._write_call(index, item)
        if response.status == "incomplete":
            return events + _write(
                ResponseIncompleteEvent(
                    type="response.incomplete", response=response, sequence_number=self._count()
                )
            )
        return events + _write(
            ResponseCompletedEvent(
                type="response.completed", response=response, sequence_number=self._count()
            )
        )

    def fail(self, status: int, message: str) -> str:
        """That it failed, and why."""
        code: Any = "rate_limit_exceeded" if status == 429 else "server_error"
        failed = self._frame("failed")
        failed.error = ResponseError(code=code, message=message)
        event = ResponseErrorEvent(
            type="error", code=code, message=message, param=None, sequence_number=self._count()
        )
        end = ResponseFailedEvent(
            type="response.failed", response=failed, sequence_number=self._count()
        )
        return _write(event) + _write(end)

    @classmethod
    def rewrite(cls, answered: Answered, created: datetime) -> dict[str, Any]:
        """An answer that was given earlier, in one piece.

        Instructions, tools and metadata are left out: they belong to a request and are not stored.
        """
        turn = answered.turn
        previous = f"resp_{turn.previous}" if turn.previous else None
        request = dict.fromkeys(_ECHOED) | {"previous_response_id": previous}
        return cls(turn, request, created.timestamp()).write_whole(answered)

    def _write(self, answered: Answered) -> Response:
        cut, calls = bool(answered.cut), answered.calls
        response = self._frame("incomplete" if cut else "completed")
        text = answered.text
        if text or not calls:
            content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
            status: Literal["incomplete", "completed"] = "incomplete" if cut else "completed"
            response.output.append(
                ResponseOutputMessage(
                    id=self._name("msg"),
                    type="message",
                    role="assistant",
                    status=status,
                    content=[content],
                )
            )
        response.output += [
            ResponseFunctionToolCall(
                type="function_call",
                id=self._name(f"fc_{n}"),
                call_id=id_,
                name=name,
                arguments=arguments,
                status="completed",
            )
            for n, (id_, name, arguments) in enumerate(calls)
        ]
        if cut:
            filtered = "filter" in answered.cut
            reason: Any = "content_filter" if filtered else "max_output_tokens"
            response.incomplete_details = IncompleteDetails(reason=reason)
        response.usage = _write_usage(answered.tokens)
        return response

    def _begin_message(self) -> str:
        item = ResponseOutputMessage(
            id=self._name("msg"), type="message", role="assistant", status="in_progress", content=[]
        )
        added = ResponseOutputItemAddedEvent(
            type="response.output_item.added",
            output_index=0,
            item=item,
            sequence_number=self._count(),
        )
        part = ResponseContentPartAddedEvent(
            type="response.content_part.added",
            item_id=item.id,
            output_index=0,
            content_index=0,
            part=ResponseOutputText(type="output_text", text="", annotations=[], logprobs=[]),
            sequence_number=self._count(),
        )
        return _write(added) + _write(part)

    def _end_message(self, response: Response) -> str:
        item = response.output[0]
        assert isinstance(item, ResponseOutputMessage)
        (part,) = item.content
        assert isinstance(part, ResponseOutputText)
        place: dict[str, Any] = {"item_id": item.id, "output_index": 0, "content_index": 0}
        said = ResponseTextDoneEvent(
            type="response.output_text.done",
            text=part.text,
            logprobs=[],
            sequence_number=self._count(),
            **place,
        )
        ended = ResponseContentPartDoneEvent(
            type="response.content_part.done", part=part, sequence_number=self._count(), **place
        )
        done = ResponseOutputItemDoneEvent(
            type="response.output_item.done",
            output_index=0,
            item=item,
            sequence_number=self._count(),
        )
        return _write(said) + _write(ended) + _write(done)

    def _write_call(self, index: int, call: ResponseFunctionToolCall) -> str:
        empty = call.model_copy(update={"arguments": "", "status": "in_progress"})
        place: dict[str, Any] = {"item_id": call.id, "output_index": index}
        added = ResponseOutputItemAddedEvent(
            type="response.output_item.added",
            output_index=index,
            item=empty,
            sequence_number=self._count(),
        )
        delta = ResponseFunctionCallArgumentsDeltaEvent(
            type="response.function_call_arguments.delta",
            delta=call.arguments,
            sequence_number=self._count(),
            **place,
        )
        whole = ResponseFunctionCallArgumentsDoneEvent(
            type="response.function_call_arguments.done",
            name=call.name,
            arguments=call.arguments,
            sequence_number=self._count(),
            **place,
        )
        done = ResponseOutputItemDoneEvent(
            type="response.output_item.done",
            output_index=index,
            item=call,
            sequence_number=self._count(),
        )
        return "".join(map(_write, (added, delta, whole, done)))

    def _frame(self, status: Any) -> Response:
        asked = self._request
        return Response(
            id=self._name("resp"),
            object="response",
            created_at=self._created,
            status=status,
            error=None,
            incomplete_details=None,
            instructions=asked["instructions"],
            metadata={k: str(v) for k, v in (asked["metadata"] or {}).items()},
            model=self._turn.model,
            output=[],
            parallel_tool_calls=True,
            previous_response_id=asked["previous_response_id"],
            temperature=None,
            tool_choice=asked["tool_choice"] or "auto",
            tools=asked["tools"] or [],
            top_p=None,
            truncation="disabled",
            usage=None,
            user=asked["user"],
            store=asked["store"] is not False,
        )

    def _name(self, kind: str) -> str:
        return f"{kind}_{self._turn.answer_id}"

    def _count(self) -> int:
        self._number += 1
        return self._number


def _write_usage(tokens: Tokens) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=tokens.input,
        input_tokens_details=InputTokensDetails(cached_tokens=tokens.cached, cache_write_tokens=0),
        output_tokens=tokens.output,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        total_tokens=tokens.input + tokens.output,
    )


def _write(event: BaseModel) -> str:
    data = dump(event)
    return write_event(data, data["type"])
