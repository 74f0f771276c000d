"""Requests made from the schemas that OpenAI and Anthropic publish, each with one thing wrong.

Whatever a field holds, a request is answered or refused with a 4xx that says why: never a 500.
"""

from __future__ import annotations

import asyncio
import json
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from random import Random
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import httpx
import pytest
from sessions import open_graph
from typing_extensions import is_typeddict

from topicloom.testing import ScriptedResponder, fake_roles
from topicloom_app import make_endpoint

SCHEMAS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "/v1/chat/completions": (
        "openai.types.chat.completion_create_params:CompletionCreateParamsNonStreaming",
        "messages",
        {"role": "user", "content": "tea"},
    ),
    "/v1/responses": (
        "openai.types.responses.response_create_params:ResponseCreateParamsNonStreaming",
        "input",
        {"role": "user", "content": "tea"},
    ),
    "/v1/messages": (
        "anthropic.types.message_create_params:MessageCreateParamsNonStreaming",
        "messages",
        {"role": "user", "content": "tea"},
    ),
}
WRONG: tuple[Any, ...] = (
    None,
    7,
    -1,
    "x",
    "",
    [],
    {},
    True,
    [7],
    [None],
    {"type": 7},
    [{"x": 1}],
    "\ud83d",
)
MISSING = object()


def make_values(kind: Any, random: Random, depth: int = 0) -> Any:
    """A value of a type, any of its kinds if it has several."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Required, NotRequired, Annotated):
        return make_values(inner[0], random, depth)
    if origin in (Union, types.UnionType):
        return make_values(random.choice(inner), random, depth)
    if origin is Literal:
        return random.choice(inner)
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        kept = [
            k for k in hints if k in kind.__required_keys__ or (depth < 4 and random.random() < 0.3)
        ]
        return {k: make_values(hints[k], random, depth + 1) for k in kept}
    if isinstance(origin, type) and issubclass(origin, dict):
        return {"key": make_values(inner[1], random, depth + 1)}
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return [make_values(inner[0], random, depth + 1) for _ in range(random.randint(1, 2))]
    plain: dict[Any, Any] = {str: "tea", int: 3, float: 0.5, bool: True, type(None): None}
    return plain.get(kind, {"a": 1})


def list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all fields and items."""
    keys: Iterable[Any] = ()
    if isinstance(value, dict):
        keys = value
    elif isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        yield (*path, key)
        yield from list_places(value[key], (*path, key))


def spoil(request: dict[str, Any], random: Random) -> dict[str, Any]:
    """The request with one thing missing, null, of another type or unknown."""
    *path, last = random.choice([p for p in list_places(request) if p != ("model",)])
    place: Any = request
    for key in path:
        place = place[key]
    wrong = random.choice((MISSING, *WRONG))
    if random.random() < 0.1 and isinstance(place, dict):
        place["unknown"] = random.choice(WRONG)
    elif wrong is MISSING:
        del place[last]
    else:
        place[last] = wrong
    return request


def make_requests(path: str, count: int, random: Random) -> Iterator[dict[str, Any]]:
    """Requests that end with a question, so that many of them are answered."""
    schema, said, question = SCHEMAS[path]
    hints = get_type_hints(resolve_name(schema), include_extras=True)
    for number in range(count):
        request = {"model": "topicloom", "max_tokens": 50, "user": f"u{number % 7}"}
        for key in random.sample(sorted(hints), random.randint(0, 2)):
            request[key] = make_values(hints[key], random)
        given = make_values(hints[said], random) if random.random() < 0.6 else []
        request[said] = [*(given if isinstance(given, list) else []), dict(question)]
        request |= {"model": "topicloom", "stream": random.random() < 0.2}
        yield spoil(request, random)


def count_answers(folder: Path, count: int, seed: int) -> dict[str, dict[int, int]]:
    """How often each status came, by protocol; those of 500 and more are not expected."""
    roles = fake_roles(ScriptedResponder(otherwise="Fine."))
    app = make_endpoint(open_graph(folder, roles), per_minute=10**9)
    random, found = Random(seed), dict[str, dict[int, int]]()

    async def send() -> None:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for path in SCHEMAS:
                counts = found.setdefault(path, {})
                for request in make_requests(path, count // len(SCHEMAS), random):
                    answer = await client.post(
                        path,
                        content=json.dumps(request),
                        headers={"content-type": "application/json"},
                    )
                    broken = answer.status_code >= 500 or '"api_error"' in answer.text
                    assert not broken, (path, request, answer.text[:300])
                    counts[answer.status_code] = counts.get(answer.status_code, 0) + 1

    asyncio.run(send())
    return found


@pytest.mark.slow
def test_no_shape_of_a_request_breaks_the_endpoint(tmp_path: Path) -> None:
    found = count_answers(tmp_path, 300, 1)
    assert all(counts.get(200) and counts.get(400) for counts in found.values()), found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_none_of_twenty_thousand_does(tmp_path: Path, seed: int) -> None:
    found = count_answers(tmp_path, 1_000, seed)
    assert sum(sum(counts.values()) for counts in found.values()) == 999
