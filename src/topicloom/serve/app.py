"""The endpoint as an ASGI application: who may ask, how much, and what is answered to mistakes."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from topicloom.errors import (
    ConfigurationError,
    InputError,
    ReplyError,
    SessionBusyError,
    TopicLoomError,
)
from topicloom.graph.stored import Graph
from topicloom.serve.histories import Answered, Conversations
from topicloom.serve.wire import (
    ChatRequest,
    read_chat,
    write_completion,
    write_end,
    write_error,
    write_model,
    write_models,
    write_piece,
    write_usage,
)

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]
_log = logging.getLogger("topicloom.serve")
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names that only this machine has for itself."""
_STATUS: Mapping[type[TopicLoomError], int] = {
    ReplyError: 502,
    SessionBusyError: 409,
    InputError: 400,
    ConfigurationError: 503,
}


def make_endpoint(
    graph: Graph,
    *,
    keys: Mapping[str, str] | None = None,
    models: Sequence[str] = ("topicloom",),
    max_bytes: int = 32_000_000,
    per_minute: int = 60,
    clock: Callable[[], float] = time.monotonic,
) -> Starlette:
    """An ASGI application that speaks OpenAI's chat-completions protocol over a session graph.

    A client's chat is a session: known again by the chat's id, or by
    `user`. Clients send the whole conversation each time; the session takes in what is new of it.

    Args:
        graph: A session graph, compiled with a checkpointer that has an async form.
        keys: Whose sessions each key opens, as `{"ann": "the key of Ann"}`; `""` for a name if
            there is only one, else of letters, digits and `_`. Without keys only this machine is
            answered.
        models: Names that clients may ask for; all are this graph.
        max_bytes: Bytes of a request at most.
        per_minute: Requests of a key in a minute at most.
        clock: Seconds that go by.

    Raises:
        ConfigurationError: A name of a key cannot be used.
    """
    for owner in keys or ():
        if not re.fullmatch(r"\w+", owner) and [*(keys or ())] != [""]:
            # The sessions of `a.b` would be among those of `a`.
            raise ConfigurationError(
                f"{owner!r} cannot name a key among others: use letters, digits and '_'"
            )
    endpoint = _Endpoint(graph, keys or {}, models, max_bytes, _Rate(per_minute, clock))
    return Starlette(
        routes=[
            Route("/health", endpoint.tell_health),
            Route("/v1/models", endpoint.list_models),
            Route("/v1/models/{name:path}", endpoint.show_model),
            Route("/v1/chat/completions", endpoint.complete, methods=["POST"]),
        ],
        exception_handlers=answer_errors(write_error),
    )


class _Endpoint:
    def __init__(
        self,
        graph: Graph,
        keys: Mapping[str, str],
        models: Sequence[str],
        max_bytes: int,
        rate: _Rate,
    ) -> None:
        self._conversations = Conversations(graph)
        self._keys, self._models, self._max_bytes, self._rate = keys, models, max_bytes, rate

    async def tell_health(self, request: Request) -> Response:
        """That it is there."""
        return JSONResponse({"status": "ok"})

    async def list_models(self, request: Request) -> Response:
        """The names that may be asked for."""
        self._admit(request)
        return JSONResponse(write_models(self._models))

    async def show_model(self, request: Request) -> Response:
        """One of them."""
        self._admit(request)
        return JSONResponse(write_model(self._check_model(request.path_params["name"])))

    async def complete(self, request: Request) -> Response:
        """Answer a chat, in one piece or as a stream."""
        owner = self._admit(request)
        if seconds := self._rate.count(owner):
            wait = {"Retry-After": str(int(seconds) + 1)}
            raise HTTPException(429, f"too many requests: wait {seconds:.0f} seconds", wait)
        body = await read_json(request, self._max_bytes)
        try:
            chat = await asyncio.to_thread(read_chat, body, request.headers, owner)
        except ValidationError as error:
            return _explain(error)
        self._check_model(chat.model)
        parts = cast("AsyncGenerator[str | Answered]", self._conversations.answer(chat))
        # What fails before anything was said is an error of the request, not of the stream.
        first = await anext(parts)
        if chat.stream:
            return StreamingResponse(_stream(chat, first, parts), media_type="text/event-stream")
        while not isinstance(first, Answered):
            first = await anext(parts)
        await parts.aclose()
        return JSONResponse(write_completion(chat, first.reply, write_usage(first.receipt)))

    def _admit(self, request: Request) -> str:
        """The owner of the request's key; raises `HTTPException` if nobody's."""
        if not self._keys:
            if request.url.hostname not in LOCAL:  # a page may give our address a name of its own
                raise HTTPException(403, "without a key, only this machine is answered")
            return ""
        given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        found = [
            owner for owner, key in self._keys.items() if hmac.compare_digest(key.encode(), given)
        ]
        if not found:
            raise HTTPException(401, "this key is not known here")
        return found[0]

    def _check_model(self, name: str) -> str:
        if name not in self._models:
            known = ", ".join(self._models)
            raise HTTPException(404, f"there is no model {name!r} here (there: {known})")
        return name


async def read_json(request: Request, max_bytes: int, kind: str = "application/json") -> bytes:
    """The body of a request, or `HTTPException` if it is of another kind or too long."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != kind:
        # A page of another site can send texts and forms without asking first.
        raise HTTPException(415, f"send {kind}")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_bytes:
            raise HTTPException(413, f"a request has {max_bytes:,} bytes at most")
    return bytes(body)


class _Rate:
    """Requests in a minute: as many at once as may come in one, then one after the other."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._most, self._clock = per_minute, clock
        self._left: dict[str, tuple[float, float]] = {}

    def count(self, owner: str) -> float:
        """Count a request; seconds to wait if it is one too many, else 0."""
        now, each = self._clock(), 60 / self._most
        left, then = self._left.get(owner, (float(self._most), now))
        left = min(self._most, left + (now - then) / each)
        if left < 1:
            return (1 - left) * each
        self._left[owner] = left - 1, now
        return 0.0


async def _stream(
    chat: ChatRequest, first: str | Answered, parts: AsyncGenerator[str | Answered]
) -> AsyncIterator[str]:
    """Server-sent events: the pieces of a reply, its end, and what went wrong on the way."""
    async with aclosing(parts):
        try:
            yield _write_part(chat, first)
            async for part in parts:
                yield _write_part(chat, part)
            yield "data: [DONE]\n\n"
        except Exception as error:  # noqa: BLE001 - whatever fails, the client is told
            yield write_event(write_error(*describe_error(error)))


def _write_part(chat: ChatRequest, part: str | Answered) -> str:
    if isinstance(part, str):
        return write_event(write_piece(chat, part))
    events = write_end(chat, part.reply, write_usage(part.receipt))
    return "".join(map(write_event, events))


def write_event(data: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def describe_error(error: Exception) -> tuple[int, str]:
    """Status and message; of what nobody foresaw, nothing that could be somebody's."""
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            return status, str(error)
    _log.error("a request failed", exc_info=error)
    return 500, "something went wrong here; the server's log says what"


def answer_errors(write: Callable[[int, str], object]) -> dict[Any, ErrorHandler]:
    """Handlers for an application's errors, which `write` puts into words for its clients."""

    async def answer(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            body = write(error.status_code, error.detail)
            return JSONResponse(body, error.status_code, error.headers)
        status, message = describe_error(error)
        return JSONResponse(write(status, message), status)

    return dict.fromkeys((HTTPException, TopicLoomError, Exception), answer)


def _explain(error: ValidationError) -> Response:
    problem = error.errors()[0]
    param = ".".join(map(str, problem["loc"]))
    return JSONResponse(
        write_error(400, f"{param or 'body'}: {problem['msg']}", param or None), 400
    )
