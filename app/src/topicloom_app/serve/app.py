"""The endpoint as an ASGI application: who may ask, how much, and in which protocol."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from topicloom import ConfigurationError
from topicloom.hosting import Graph, find_deps, find_zone
from topicloom_app.serve import anthropic_messages
from topicloom_app.serve.anthropic_messages import MessagesWriter, read_messages_request
from topicloom_app.serve.callers import Caller
from topicloom_app.serve.chat_completions import read_chat, write_error, write_model, write_models
from topicloom_app.serve.conversations import Conversations, get_now
from topicloom_app.serve.memory_routes import list_memory_routes
from topicloom_app.serve.metrics import CONTENT_TYPE, MetricsPage
from topicloom_app.serve.probe import StorageProbe
from topicloom_app.serve.requests import name_person
from topicloom_app.serve.response_events import ResponseWriter
from topicloom_app.serve.responses import (
    read_compaction,
    read_response_request,
    strip_kind,
    write_compaction,
)
from topicloom_app.serve.streams import Parts, answer_in_pieces, answer_whole
from topicloom_app.serve.turns import Tokens, TurnRequest, Writer
from topicloom_app.serve.web import (
    InvalidRequestError,
    Rate,
    answer_errors,
    check_trust,
    find_owner,
    read_json,
)

RequestReader = Callable[[bytes, Mapping[str, str], str], tuple[TurnRequest, Writer]]
"""Reads the body and the headers of a request of one of the owners."""
_ANTHROPIC = "/v1/messages"


def make_endpoint(
    graph: Graph,
    *,
    keys: Mapping[str, str] | None = None,
    models: Sequence[str] = ("topicloom",),
    trusted: Collection[str] = (),
    origins: Sequence[str] = (),
    record: bool = False,
    timezones: Mapping[str, str] | None = None,
    max_bytes: int = 32_000_000,
    per_minute: int = 60,
    heartbeat: float = 3.0,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] | None = None,
) -> Starlette:
    """An ASGI application that speaks OpenAI's and Anthropic's protocols over a session graph.

    It answers `/v1/chat/completions`, `/v1/responses` and `/v1/messages`. `/v1/memory` has what the
    sessions remember, as `/openapi.json` describes it. `/healthz`, `/readyz` and `/metrics` are for
    those who run it. Each chat of a client is a session, found by the chat's id or by `user`.
    Clients send the whole conversation each time; the session takes in what is new.

    Args:
        graph: A session graph, compiled with a checkpointer that has an async form.
        keys: Whose sessions each key opens, as `{"ann": "the key of Ann"}`; `""` for a name if
            there is only one, else of letters, digits and `_`. Without keys only this machine is
            answered.
        trusted: Names of the keys that may say who is talking, by the headers `X-Topicloom-User`
            and `X-Topicloom-Scope`; `""` for the only one. Whoever has such a key can speak for any
            of its users: it is for your own server, never for a browser.
        models: Names that clients may ask for; all are this graph.
        origins: Addresses of pages whose scripts may ask from a browser, such as
            `http://localhost:3000`; `"*"` for any page, which needs keys.
        record: Whether requests that ask for `store: false` are recorded too: coding agents always
            ask for it.
        timezones: Where the user of each key is, as `{"ann": "Europe/Paris"}`, if neither the
            header `X-Topicloom-Timezone` nor what is kept of the user says it.
        max_bytes: Bytes of a request at most.
        per_minute: Requests of a key in a minute at most.
        heartbeat: Seconds that a stream waits for its first part before it sends its headers, and
            between the comments that it sends while nothing comes.
        clock: Seconds that go by.
        now: Tells when a request comes, by the clock that dates checkpoints; the system's if not
            given.

    Raises:
        ConfigurationError: A name of a key, or an origin, cannot be used.
    """
    _check_owners(keys or {})
    check_trusted(trusted, keys or {})
    rate, conversations = Rate(per_minute, clock), Conversations(graph, now or get_now)
    probe = StorageProbe(graph)
    endpoint = _Endpoint(conversations, probe, keys or {}, models, max_bytes, rate, heartbeat)
    find_deps(graph).telemetry.listeners.append(endpoint.metrics.take)
    endpoint.trusted, endpoint.record = frozenset(trusted), record
    endpoint.timezones = {name: find_zone(zone).key for name, zone in (timezones or {}).items()}
    return Starlette(
        routes=_list_routes(endpoint),
        middleware=_allow_origins(origins, keys or {}),
        exception_handlers={**answer_errors(_write_error), InvalidRequestError: _explain},
    )


def _check_owners(keys: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` if a key's name cannot stand before those of its sessions, or if
    one is blank: a request without a key would have it."""
    for owner, key in keys.items():
        if not key.strip():
            raise ConfigurationError(
                "the key of {owner!r} is empty, which lets anybody in: set one, or leave it out",
                owner=owner,
            )
        if not re.fullmatch(r"\w+", owner) and [*keys] != [""]:
            # The sessions of `a.b` would be among those of `a`.
            raise ConfigurationError(
                "{owner!r} cannot name a key among others: use letters, digits and '_'", owner=owner
            )


def _list_routes(endpoint: _Endpoint) -> list[Route]:
    return [
        *(Route(path, tell_paths) for path in ("/", "/v1")),
        Route("/healthz", endpoint.tell_health),
        Route("/readyz", endpoint.tell_readiness),
        Route("/metrics", endpoint.show_metrics),
        Route("/v1/models", endpoint.list_models),
        Route("/v1/models/{name:path}", endpoint.show_model),
        Route("/v1/responses/compact", endpoint.compact, methods=["POST"]),
        *(
            Route(path, endpoint.answer_with(read), methods=["POST"])
            for path, read in _READERS.items()
        ),
        Route("/v1/responses/{id}", endpoint.show_response),
        Route(f"{_ANTHROPIC}/count_tokens", endpoint.count_tokens, methods=["POST"]),
        *list_memory_routes(endpoint.identify, endpoint.max_bytes),
    ]


_READERS: Mapping[str, RequestReader] = {
    "/v1/chat/completions": read_chat,
    "/v1/responses": read_response_request,
    _ANTHROPIC: read_messages_request,
}
"""How the requests of each protocol are read."""


async def tell_paths(request: Request) -> Response:
    """What is here, for somebody who opens the address in a browser."""
    base = f"{request.url.scheme}://{request.url.netloc}"
    paths = "".join(f"\nPOST {base}{path}" for path in _READERS)
    told = f"A topicloom endpoint. Set your chat client's base URL to {base}/v1"
    return PlainTextResponse(f"{told}\n{paths}\n")


class _Endpoint:
    def __init__(
        self,
        conversations: Conversations,
        probe: StorageProbe,
        keys: Mapping[str, str],
        models: Sequence[str],
        max_bytes: int,
        rate: Rate,
        heartbeat: float,
    ) -> None:
        self._conversations, self._probe = conversations, probe
        self.metrics = MetricsPage()
        self._keys, self._models, self.max_bytes, self._rate = keys, models, max_bytes, rate
        self._heartbeat = heartbeat
        self.record = False
        """True to record what asks for `store: false`, too."""
        self.timezones: Mapping[str, str] = {}
        """Where the user of each key is."""
        self.trusted = frozenset[str]()
        """Names of the keys that may say who is talking."""

    async def tell_health(self, request: Request) -> Response:
        """That it is there. It asks nobody, so that it never waits."""
        return JSONResponse({"status": "ok"})

    async def tell_readiness(self, request: Request) -> Response:
        """Whether turns can be served: within a second, with the reason if not."""
        fault = await self._probe.find_fault()
        if fault:
            return JSONResponse({"status": "unavailable", "reason": fault}, 503)
        return JSONResponse({"status": "ok"})

    async def show_metrics(self, request: Request) -> Response:
        """What was measured of all turns, for whoever runs this server."""
        owner = find_owner(self._keys, request)
        if len(self._keys) > 1 and owner not in self.trusted:
            raise HTTPException(
                403, "the metrics are of the users of all keys: ask with a key named by --trust"
            )
        return Response(self.metrics.write(), media_type=CONTENT_TYPE)

    async def list_models(self, request: Request) -> Response:
        """The names that may be asked for."""
        find_owner(self._keys, request)
        if _speaks_anthropic(request):
            return JSONResponse(anthropic_messages.write_models(self._models))
        return JSONResponse(write_models(self._models))

    async def show_model(self, request: Request) -> Response:
        """One of them."""
        find_owner(self._keys, request)
        name = self._check_model(request.path_params["name"])
        if _speaks_anthropic(request):
            return JSONResponse(anthropic_messages.write_model(name))
        return JSONResponse(write_model(name))

    async def show_response(self, request: Request) -> Response:
        """An answer that was given, by its id."""
        owner = find_owner(self._keys, request)
        id_ = strip_kind(request.path_params["id"])
        answered, created = await self._conversations.read_answer(owner, id_)
        return JSONResponse(ResponseWriter.rewrite(answered, created))

    async def count_tokens(self, request: Request) -> Response:
        """Tokens of a request of Anthropic's protocol, as it would be sent."""
        turn, _ = await self._read(request, read_messages_request)
        count = await asyncio.to_thread(self._conversations.count_tokens, turn)
        return JSONResponse({"input_tokens": count})

    async def compact(self, request: Request) -> Response:
        """An item that stands for a conversation that is kept, so that it need not be sent."""
        turn, _ = await self._read(request, read_compaction)
        answer = await self._conversations.find_known_answer(turn)
        return JSONResponse(write_compaction(turn, answer))

    def identify(self, request: Request) -> Caller:
        """Who asks for memory."""
        owner = self._admit(request)
        return Caller(self._conversations, owner, *name_person(request.headers, owner))

    def _admit(self, request: Request) -> str:
        """The owner of a request's key; raises `HTTPException` if it may not be answered now."""
        owner = find_owner(self._keys, request)
        self._rate.check(owner)
        check_trust(request.headers, owner, self.trusted)
        return owner

    async def _read(self, request: Request, read: RequestReader) -> tuple[TurnRequest, Writer]:
        """The turn that a request asks for, and what writes its answer."""
        owner = self._admit(request)
        body = await read_json(request, self.max_bytes)
        try:
            turn, writer = await asyncio.to_thread(read, body, request.headers, owner)
        except ValidationError as error:
            raise InvalidRequestError(error) from error
        self._check_model(turn.model)
        usual = self.timezones.get(owner, "")
        return replace(turn, recorded=turn.recorded or self.record, usual_timezone=usual), writer

    def answer_with(self, read: RequestReader) -> Callable[[Request], Any]:
        """The handler of the requests of one protocol."""

        async def answer(request: Request) -> Response:
            turn, writer = await self._read(request, read)
            if turn.stream and isinstance(writer, MessagesWriter):
                count = await asyncio.to_thread(self._conversations.count_tokens, turn)
                writer.asked = Tokens(count, 0, 0)
            parts = Parts(self._conversations.answer(turn))
            if turn.stream:
                return await answer_in_pieces(parts, writer, self._heartbeat)
            return JSONResponse(await answer_whole(parts, writer))

        return answer

    def _check_model(self, name: str) -> str:
        if name not in self._models:
            known = ", ".join(self._models)
            raise HTTPException(404, f"there is no model {name!r} here (there: {known})")
        return name


def check_trusted(trusted: Collection[str], keys: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` if one that may say who is talking is no name of a key."""
    if unknown := sorted(set(trusted) - set(keys)):
        raise ConfigurationError(
            "{name!r} is trusted to say who is talking, and no key has that name: set the"
            " key, or leave the name out",
            name=unknown[0],
        )


def check_origins(origins: Sequence[str], keys: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` if one cannot be used, or lets in any page there is."""
    for origin in origins:
        if origin == "*" and not keys:
            raise ConfigurationError(
                "origin '*' lets any page read your sessions: set keys, or name the pages"
            )
        if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+", origin):
            raise ConfigurationError(
                "{origin!r} is not an origin: write it as http://localhost:3000, without a path",
                origin=origin,
            )


def _allow_origins(origins: Sequence[str], keys: Mapping[str, str]) -> list[Middleware]:
    """What answers a browser that asks if a page may send requests."""
    check_origins(origins, keys)
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
            max_age=600,
        )
    ]


def _speaks_anthropic(request: Request) -> bool:
    asked = request.url.path
    return asked.startswith(_ANTHROPIC) or "anthropic-version" in request.headers


def _write_error(
    request: Request, status: int, message: str, param: str | None = None
) -> dict[str, Any]:
    if _speaks_anthropic(request):
        return anthropic_messages.write_error(status, message)
    return write_error(status, message, param)


async def _explain(request: Request, error: Exception) -> Response:
    problem = cast("InvalidRequestError", error).problem
    param = ".".join(str(part) for part in problem["loc"] if re.fullmatch(r"\w+", str(part)))
    message = f"{param or 'body'}: {problem['msg']}"
    return JSONResponse(_write_error(request, 400, message, param or None), 400)
