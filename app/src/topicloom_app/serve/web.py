"""Requests and answers over HTTP, for the endpoint and the inspector alike."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from topicloom import (
    ConfigurationError,
    ConflictError,
    InputError,
    LimitReachedError,
    ReplyError,
    SessionBusyError,
    TopicLoomError,
)
from topicloom.hosting import replace_surrogates
from topicloom_app.serve.turns import SCOPE_HEADER, USER_HEADER, UnknownResponseError

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]
_log = logging.getLogger("topicloom_app.serve")
LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names that only this machine has for itself."""
_STATUS: Mapping[type[TopicLoomError], int] = {
    SessionBusyError: 409,
    ConflictError: 409,
    UnknownResponseError: 404,
    InputError: 400,
    ConfigurationError: 503,
}
_PASSED_ON = frozenset({400, 401, 403, 404, 413, 422, 429})
"""Statuses of the model's server that clients are told as they are."""


class InvalidRequestError(InputError):
    """A request that is not as its protocol has it."""

    def __init__(self, error: ValidationError) -> None:
        # Of the kinds that a value may be of, the one that it comes closest to.
        self.problem = max(error.errors(), key=lambda problem: len(problem["loc"]))
        super().__init__(self.problem["msg"])


class Failure(NamedTuple):
    """What a client is told of an error."""

    status: int
    message: str
    retry_after: str = ""
    """The `Retry-After` header; "" for none."""
    final: bool = False
    """True if the clients of OpenAI and Anthropic are not to repeat it by themselves."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of an answer that says it."""
        found = {"Retry-After": self.retry_after, "x-should-retry": "false" if self.final else ""}
        return {name: value for name, value in found.items() if value}


def describe_error(error: Exception) -> Failure:
    """What a client is told; of what nobody foresaw, nothing that could be somebody's."""
    if isinstance(error, HTTPException):
        return Failure(
            error.status_code, error.detail, (error.headers or {}).get("Retry-After", "")
        )
    if isinstance(error, LimitReachedError):
        return Failure(429, str(error), error.retry_after, final=True)
    if isinstance(error, ReplyError):
        return _describe_reply_error(error)
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            return Failure(status, str(error))
    _log.error("a request failed", exc_info=error)
    return Failure(500, "something went wrong here; the server's log says what")


def _describe_reply_error(error: ReplyError) -> Failure:
    """The status of the model's server, with a sentence for the user of the client.

    Clients repeat a request that failed with 5xx by themselves, but not one that failed with 4xx.
    """
    status = error.status if error.status in _PASSED_ON else 502
    reason = error.reason or str(error)
    match status:
        case 401 | 403:
            said = (
                f"The model's server does not accept this server's key ({reason})."
                " Your own key is all right; whoever runs this server has to set a valid one."
            )
        case 404:
            said = (
                f"The model's server does not know the model ({reason})."
                " Whoever runs this server has to name another one."
            )
        case 429:
            wait = error.retry_after
            when = f"in {wait} seconds" if wait.replace(".", "", 1).isdigit() else "later"
            said = f"The model is busy or its quota is used up ({reason}). Try again {when}."
        case 400 | 413 | 422:
            said = (
                f"The model's server refuses this request ({reason})."
                " Sending it again does not help; change it first."
            )
        case _:
            said = f"The model gave no reply ({reason}). Your message is kept; send it again."
    return Failure(status, said, error.retry_after)


def answer_errors(write: Callable[[Request, int, str], object]) -> dict[Any, ErrorHandler]:
    """Handlers for an application's errors, which `write` puts into words for its clients."""

    async def answer(request: Request, error: Exception) -> Response:
        failure = describe_error(error)
        headers = dict(getattr(error, "headers", None) or {}) | failure.headers
        return JSONResponse(
            write(request, failure.status, failure.message), failure.status, headers
        )

    return dict.fromkeys((HTTPException, TopicLoomError, Exception), answer)


async def read_json(request: Request, max_bytes: int, kind: str = "application/json") -> bytes:
    """The body of a request, or `HTTPException` if it is of another kind or too long."""
    given = request.headers.get("content-type", "").partition(";")[0].strip()
    if given.lower() != kind:
        # A page of another site can send texts and forms without asking first.
        raise HTTPException(415, f"send {kind}")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_bytes:
            raise HTTPException(413, f"a request has {max_bytes:,} bytes at most")
    return bytes(body)


def find_owner(keys: Mapping[str, str], request: Request) -> str:
    """The owner of a request's key; raises `HTTPException` if nobody's.

    OpenAI's clients send a key as `Authorization: Bearer`, Anthropic's as `x-api-key`.
    """
    if not keys:
        if request.url.hostname not in LOCAL:  # a page may give our address a name of its own
            raise HTTPException(403, "without a key, only this machine is answered")
        return ""
    headers = request.headers
    given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not given.strip():
        raise HTTPException(401, "send a key: this server answers nobody without one")
    found = [
        owner for owner, key in keys.items() if hmac.compare_digest(key.encode(), given.encode())
    ]
    if not found:
        raise HTTPException(401, "this key is not known here")
    return found[0]


def check_trust(headers: Mapping[str, str], owner: str, trusted: Collection[str]) -> None:
    """Raise `HTTPException` if a request says who is talking, and its key may not."""
    named = next((name for name in (USER_HEADER, SCOPE_HEADER) if headers.get(name)), "")
    if named and owner not in trusted:
        raise HTTPException(
            403,
            f"{named} is for keys that may say who is talking, and this one may not: leave the"
            " header out, or have the key named by --trust",
        )
    blank = next((n for n in (USER_HEADER, SCOPE_HEADER) if not headers.get(n, "-").strip()), "")
    if blank:
        raise HTTPException(400, f"{blank} is empty: send a name, or leave the header out")
    if headers.get(SCOPE_HEADER) and not headers.get(USER_HEADER):
        raise HTTPException(400, f"{SCOPE_HEADER} needs a user: send {USER_HEADER} as well")


class Rate:
    """Requests in a minute: as many at once as may come in one, then one after the other."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._most, self._clock = per_minute, clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, owner: str) -> None:
        """Count a request; raises `HTTPException` if it is one too many."""
        now, each = self._clock(), 60 / self._most
        left, then = self._left.get(owner, (float(self._most), now))
        left = min(self._most, left + (now - then) / each)
        if left < 1:
            seconds = (1 - left) * each
            wait = {"Retry-After": str(int(seconds) + 1)}
            raise HTTPException(429, f"too many requests: wait {seconds:.0f} seconds", wait)
        self._left[owner] = left - 1, now


def write_event(data: Mapping[str, Any], name: str = "") -> str:
    """A server-sent event, under a name if it has one."""
    named = f"event: {name}\n" if name else ""
    written = replace_surrogates(
        json.dumps(data, ensure_ascii=False)
    )  # a model may cut a character
    return f"{named}data: {written}\n\n"
