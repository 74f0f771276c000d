"""OpenAI's Responses: how a request is answered, in one piece or as events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from time import time
from typing import Any

from topicloom_app.serve.turns import Answered, Tokens, TurnRequest
from topicloom_app.serve.web import write_event

_Data = dict[str, Any]
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
        self._number = -1
        self._begun = False

    def write_whole(self, answered: Answered) -> _Data:
        """The answer in one piece."""
        cut, calls = bool(answered.cut), answered.calls
        response = self._frame("incomplete" if cut else "completed")
        if answered.text or not calls:
            message = self._make_message(response["status"], [_make_text(answered.text)])
            response["output"].append(message)
        response["output"] += [
            {
                "type": "function_call",
                "id": self._name(f"fc_{n}"),
                "call_id": id_,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }
            for n, (id_, name, arguments) in enumerate(calls)
        ]
        if cut:
            filtered = "filter" in answered.cut
            reason = "content_filter" if filtered else "max_output_tokens"
            response["incomplete_details"] = {"reason": reason}
        response["usage"] = write_usage(answered.tokens)
        return response

    def begin(self) -> str:
        """That it was taken in, and goes on."""
        response = self._frame("in_progress")
        return "".join(
            self._write(f"response.{kind}", response=response)
            for kind in ("created", "in_progress")
        )

    def write_piece(self, text: str) -> str:
        """The events of a piece."""
        events = "" if self._begun else self._begin_message()
        self._begun = True
        return events + self._write(
            "response.output_text.delta", **self._place_text(), delta=text, logprobs=[]
        )

    def end(self, answered: Answered) -> str:
        """The end of the message, the calls of tools, and the whole response once more."""
        response = self.write_whole(answered)
        events = self._end_message(response["output"][0]) if self._begun else ""
        for index, item in enumerate(response["output"]):
            if item["type"] == "function_call":
                events += self._write_call(index, item)
        return events + self._write(f"response.{response['status']}", response=response)

    def fail(self, status: int, message: str) -> str:
        """That it failed, and why."""
        error = {
            "code": "rate_limit_exceeded" if status == 429 else "server_error",
            "message": message,
        }
        failed = self._frame("failed") | {"error": error}
        event = self._write("error", **error, param=None)
        return event + self._write("response.failed", response=failed)

    @classmethod
    def rewrite(cls, answered: Answered, created: datetime) -> _Data:
        """An answer that was given earlier, in one piece.

        Instructions, tools and metadata are left out: they belong to a request and are not stored.
        """
        turn = answered.turn
        previous = f"resp_{turn.previous}" if turn.previous else None
        request = dict.fromkeys(_ECHOED) | {"previous_response_id": previous}
        return cls(turn, request, created.timestamp()).write_whole(answered)

    def _begin_message(self) -> str:
        item = self._make_message("in_progress", [])
        added = self._write("response.output_item.added", output_index=0, item=item)
        part = _make_text("")
        return added + self._write("response.content_part.added", **self._place_text(), part=part)

    def _end_message(self, item: _Data) -> str:
        (part,), place = item["content"], self._place_text()
        said = self._write("response.output_text.done", **place, text=part["text"], logprobs=[])
        ended = self._write("response.content_part.done", **place, part=part)
        return said + ended + self._write("response.output_item.done", output_index=0, item=item)

    def _write_call(self, index: int, call: _Data) -> str:
        empty = call | {"arguments": "", "status": "in_progress"}
        said, kind = call["arguments"], "response.function_call_arguments"
        place = {"item_id": call["id"], "output_index": index}
        return (
            self._write("response.output_item.added", output_index=index, item=empty)
            + self._write(f"{kind}.delta", **place, delta=said)
            + self._write(f"{kind}.done", **place, name=call["name"], arguments=said)
            + self._write("response.output_item.done", output_index=index, item=call)
        )

    def _frame(self, status: str) -> _Data:
        asked = self._request
        return {
            "id": self._name("resp"),
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": asked["instructions"],
            "metadata": {k: str(v) for k, v in (asked["metadata"] or {}).items()},
            "model": self._turn.model,
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": asked["previous_response_id"],
            "temperature": None,
            "tool_choice": asked["tool_choice"] or "auto",
            "tools": asked["tools"] or [],
            "top_p": None,
            "truncation": "disabled",
            "usage": None,
            "user": asked["user"],
            "store": asked["store"] is not False,
        }

    def _make_message(self, status: str, content: list[_Data]) -> _Data:
        return {
            "id": self._name("msg"),
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _place_text(self) -> _Data:
        return {"item_id": self._name("msg"), "output_index": 0, "content_index": 0}

    def _name(self, kind: str) -> str:
        return f"{kind}_{self._turn.answer_id}"

    def _write(self, kind: str, **fields: Any) -> str:
        self._number += 1
        return write_event({"type": kind, **fields, "sequence_number": self._number}, kind)


def _make_text(text: str) -> _Data:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def write_usage(tokens: Tokens) -> _Data:
    """What a response cost."""
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    }
