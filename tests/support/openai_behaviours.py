"""What a scripted model server may do with one request, as data and as JSON on the wire."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Request = dict[str, Any]
"""The JSON body of one chat-completions request."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens reported with a reply."""

    prompt: int
    completion: int
    cached: int = 0
    """How many of the prompt's tokens came from the provider's cache."""

    def wire(self) -> dict[str, Any]:
        """Write it as OpenAI does."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of a reply."""

    name: str
    args: Mapping[str, Any] | str = field(default_factory=dict)
    """Arguments; a string is sent as it is, so that it may be broken JSON."""

    id: str = "call_1"

    def arguments(self) -> str:
        """Write the arguments as JSON text."""
        return self.args if isinstance(self.args, str) else json.dumps(self.args)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: one JSON body, or chunks when the request asks for a stream."""

    text: str = ""
    usage: Usage | None = None
    """Tokens to report; None for a quarter of the characters of prompt and text."""

    tool_calls: Sequence[Call] = ()
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter", ""] | None = None
    """None for `tool_calls` when there are any, else `stop`; "" for an answer without one."""

    def body(self, request: Request) -> dict[str, Any]:
        """Write the answer to a request without a stream."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [_call(call, call.arguments()) for call in self.tool_calls]
        choice = {"index": 0, "message": message, "finish_reason": self._finish()}
        frame = _frame("chat.completion", request)
        return {**frame, "choices": [choice], "usage": self._usage(request).wire()}

    def chunks(self, request: Request) -> Iterator[dict[str, Any]]:
        """Write the answer as the objects of a stream, each text in several pieces."""
        frame = _frame("chat.completion.chunk", request)
        for delta in self._deltas():
            yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        last = {"index": 0, "delta": {}, "finish_reason": self._finish()}
        yield {**frame, "choices": [last]}
        if (request.get("stream_options") or {}).get("include_usage"):
            yield {**frame, "choices": [], "usage": self._usage(request).wire()}

    def _deltas(self) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        for piece in _pieces(self.text):
            yield {"content": piece}
        for index, call in enumerate(self.tool_calls):
            yield {"tool_calls": [{"index": index, **_call(call, "")}]}
            for piece in _pieces(call.arguments()):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _finish(self) -> str | None:
        if self.finish_reason is None:
            return "tool_calls" if self.tool_calls else "stop"
        return self.finish_reason or None

    def _usage(self, request: Request) -> Usage:
        prompt = len(json.dumps(request["messages"], ensure_ascii=False))
        return self.usage or Usage(prompt // 4, len(self.text) // 4)


@dataclass(frozen=True, slots=True)
class Status:
    """An error answer with a JSON body."""

    code: int
    retry_after: float | None = None
    """Seconds for the `Retry-After` header; None for no header."""

    message: str = "scripted"
    """`{authorization}` stands for that header of the request."""


@dataclass(frozen=True, slots=True)
class CutStream:
    """An answer whose connection closes before its end."""

    after_chunks: int
    """Chunks sent first; without a stream, half of the body is sent."""

    reply: Reply = field(default_factory=lambda: Reply("a reply that is never complete"))


@dataclass(frozen=True, slots=True)
class Drip:
    """An answer whose chunks come slowly; without a stream, its body comes late."""

    seconds: float
    """Before each chunk."""

    reply: Reply = field(default_factory=Reply)


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing at all for a while, then a closed connection."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Garbage:
    """Status 200 with something that is not the protocol."""

    body: str = "<html>a proxy says hello</html>"
    type: str = "text/html"


@dataclass(frozen=True, slots=True)
class Empty:
    """A well-formed answer without content."""


Behaviour = Reply | Status | CutStream | Drip | Hang | Garbage | Empty
Answer = Behaviour | Callable[[Request], Behaviour]


def router(routes: Mapping[str, Answer], default: Answer) -> Callable[[Request], Behaviour]:
    """Choose by the system message.

    Args:
        routes: What to do by a substring of the system message; the first match counts.
        default: What to do when nothing matches.
    """

    def choose(request: Request) -> Behaviour:
        system = system_text(request)
        answer = next((answer for part, answer in routes.items() if part in system), default)
        return answer(request) if callable(answer) else answer

    return choose


def system_text(request: Request) -> str:
    """Join the text of a request's system and developer messages."""
    contents = [
        message["content"]
        for message in request["messages"]
        if message["role"] in ("system", "developer")
    ]
    blocks = [[{"text": text}] if isinstance(text, str) else text for text in contents]
    return "\n".join(block.get("text", "") for content in blocks for block in content)


def _frame(kind: str, request: Request) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": request["model"]}


def _call(call: Call, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _pieces(text: str, count: int = 4) -> Iterator[str]:
    size = max(1, math.ceil(len(text) / count))
    return (text[start : start + size] for start in range(0, len(text), size))
