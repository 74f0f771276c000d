"""The routes of the memory over HTTP, and the OpenAPI document that describes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from topicloom import __version__
from topicloom_app.serve.callers import Caller
from topicloom_app.serve.memory import OPERATIONS
from topicloom_app.serve.operations import Operation, describe_operations
from topicloom_app.serve.requests import parse_body
from topicloom_app.serve.turns import SCOPE_HEADER, USER_HEADER
from topicloom_app.serve.web import read_json

_PREFIX = "/v1/memory"


def list_memory_routes(identify: Callable[[Request], Caller], max_bytes: int) -> list[Route]:
    """The routes of all operations, and of the document that describes them.

    Args:
        identify: Says who asks; raises `HTTPException` if nobody may.
        max_bytes: Bytes of a request at most.
    """

    def answer_with(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            caller, place = identify(request), dict(request.path_params)
            thread = place.pop("thread", "")
            body = await read_json(request, max_bytes) if operation.method == "POST" else b""
            values = {**request.query_params, **place}
            given = operation.read({**values, "body": parse_body(body)} if body else values)
            if not thread:
                return _send(operation, await operation.run(caller, **given))
            memory, session = await caller.open(thread)
            reads = operation.method == "GET"
            async with nullcontext() if reads else caller.conversations.hold(session):
                return _send(operation, await operation.run(memory, **given))

        return answer

    async def describe(_: Request) -> Response:
        return JSONResponse(describe_memory())

    routes = [
        Route(_PREFIX + operation.path, answer_with(operation), methods=[operation.method])
        for operation in OPERATIONS
    ]
    return [Route("/openapi.json", describe), *routes]


def _send(operation: Operation, answer: object) -> Response:
    return Response(operation.answer.dump_json(answer), media_type="application/json")


@cache
def describe_memory() -> dict[str, Any]:
    """The OpenAPI document of the operations."""
    text = {"type": "string"}
    null = {"anyOf": [text, {"type": "null"}]}
    error = {"message": text, "type": text, "param": null, "code": null}
    wrapped = {"error": {"type": "object", "properties": error, "required": [*error]}}
    parameters = (
        ("thread", "path", "thread", "Name that its client gave the chat, or of its session."),
        ("user", "header", USER_HEADER, "The user that a trusted key speaks for."),
        ("scope", "header", SCOPE_HEADER, "The scope of that user, such as a project."),
    )
    frame = {
        "info": {
            "title": "topicloom: memory",
            "version": __version__,
            "description": "What `topicloom serve` remembers of threads: to search and to change.",
        },
        "security": [{"key": []}, {}],
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "parameters": {
                key: {
                    "in": place,
                    "name": name,
                    "required": place == "path",
                    "description": description,
                    "schema": text,
                }
                for key, place, name, description in parameters
            },
            "schemas": {
                "Error": {"type": "object", "properties": wrapped, "required": ["error"]},
            },
        },
    }
    return describe_operations(OPERATIONS, _PREFIX, frame)
