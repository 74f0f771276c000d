"""Who may see the inspector's page, and what a browser may do on it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import (
    PlainTextResponse,
    Response,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets a request through if it has the key, comes from our own page and names our own host.

    The key is in the URL of the page once, and then in a cookie that scripts cannot read.
    """

    def __init__(self, app: ASGIApp, key: str, hosts: Collection[str]) -> None:
        """Names that others may know the machine by are refused, but if there are no `hosts`."""
        self._app, self._hosts = app, hosts
        self._key, self._pass = key, hashlib.sha256(key.encode()).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, grant = Request(scope), ""
        problem = self._refuse(request)
        if problem is None and not _equal(request.cookies.get(_name(request)), self._pass):
            if request.url.path == "/" and _equal(request.query_params.get("key"), self._key):
                grant = f"{_name(request)}={self._pass}; HttpOnly; SameSite=Strict; Path=/"
            else:
                text = "Open the address that `topicloom ui` printed: it has the key."
                problem = PlainTextResponse(text, 401)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if grant:
                    headers.append("Set-Cookie", grant)
            await send(message)

        await (problem or self._app)(scope, receive, send_guarded)

    def _refuse(self, request: Request) -> Response | None:
        """The refusal of a request that another site may have had a browser make."""
        if self._hosts and request.url.hostname not in self._hosts:
            return PlainTextResponse(
                "This host name is not allowed. Open the address that `topicloom ui` printed.", 403
            )
        own = f"{request.url.scheme}://{request.url.netloc}"
        if request.headers.get("origin", own) != own:
            return PlainTextResponse("Requests from pages of other sites are refused.", 403)
        return None


def _name(request: Request) -> str:
    """The cookie's name: browsers do not tell servers at other ports apart."""
    return f"topicloom_ui_{request.url.port}"


def _equal(given: str | None, known: str) -> bool:
    return hmac.compare_digest((given or "").encode(), known.encode())
