"""A loopback server that speaks OpenAI's chat-completions protocol and does as it is told.

```
with OpenAIServer(Status(429, retry_after=0), Reply("hello")) as server:
    model = ChatOpenAI(base_url=server.base_url, api_key="test", model="gpt-4o")
    assert model.invoke("hi").content == "hello"
    assert server.requests[1]["messages"][0]["content"] == "hi"
```
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Any, Self, cast

import pytest
from openai_behaviours import (
    Answer,
    Behaviour,
    CutStream,
    Drip,
    Empty,
    Garbage,
    Hang,
    Reply,
    Request,
    Status,
)


class OpenAIServer:
    """Answers each request with the next behaviour of its script, and records all bodies."""

    def __init__(self, *script: Behaviour) -> None:
        """Listen on a free port of 127.0.0.1; requests are answered inside `with`."""
        self.requests: list[Request] = []
        self.models: list[dict[str, Any]] | None = None
        """What it lists as its models; None for a server that knows no such list."""
        self.listed = 0
        """How often it was asked for them."""
        self._script = deque[Behaviour](script)
        self._otherwise: Answer = Status(400, message="the script has no more behaviours")
        self._lock = Lock()
        self.closing = Event()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def then(self, *script: Behaviour) -> None:
        """Add behaviours to the script, one for each request."""
        with self._lock:
            self._script.extend(script)

    def otherwise(self, answer: Answer) -> None:
        """Say what to do once the script is used up, such as a `router`; else it is status 400."""
        with self._lock:
            self._otherwise = answer

    def choose(self, request: Request) -> Behaviour:
        """Record a request and take the behaviour that is due."""
        with self._lock:
            self.requests.append(request)
            answer = self._script.popleft() if self._script else self._otherwise
        return answer(request) if callable(answer) else answer

    def __enter__(self) -> Self:
        """Start to answer."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wake what hangs, wait for what is being answered and free the port."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Listener(ThreadingHTTPServer):
    request_queue_size = 128  # a full queue costs a client a second
    daemon_threads = False  # so that closing waits for the handlers and leaves no socket behind
    owner: OpenAIServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer one request; the connection is closed after each."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        owner = cast("_Listener", self.server).owner
        if self.path != "/v1/chat/completions":
            return self._send_status(Status(404, message=f"no such path: {self.path}"))
        request: Request = json.loads(body)
        try:
            return self._perform(owner.choose(request), request, owner.closing)
        except ConnectionError:
            return None  # a client that timed out or left a stream is no fault of the server

    def do_GET(self) -> None:
        """List the models."""
        owner = cast("_Listener", self.server).owner
        owner.listed += 1
        if self.path != "/v1/models" or owner.models is None:
            return self._send_status(Status(404, message=f"no such path: {self.path}"))
        body = json.dumps({"object": "list", "data": owner.models}).encode()
        return self._send_body(200, body, {"Content-Type": "application/json"})

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def _perform(self, behaviour: Behaviour, request: Request, closing: Event) -> None:
        match behaviour:
            case Reply():
                self._send_reply(behaviour, request)
            case Empty():
                self._send_reply(Reply(""), request)
            case Status():
                self._send_status(behaviour)
            case CutStream():
                self._send_reply(behaviour.reply, request, behaviour.after_chunks)
            case Drip():
                pause = partial(closing.wait, behaviour.seconds)
                self._send_reply(behaviour.reply, request, pause=pause)
            case Garbage():
                self._send_body(200, behaviour.body.encode(), {"Content-Type": behaviour.type})
            case Hang():
                closing.wait(behaviour.seconds)
                self.close_connection = True

    def _send_reply(
        self,
        reply: Reply,
        request: Request,
        cut: int | None = None,
        pause: Callable[[], object] = bool,
    ) -> None:
        if request.get("stream"):
            return self._send_stream(reply, request, cut, pause)
        pause()
        body = json.dumps(reply.body(request)).encode()
        sent = len(body) if cut is None else len(body) // 2
        self._send_head(200, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body[:sent])
        return None

    def _send_stream(
        self, reply: Reply, request: Request, cut: int | None, pause: Callable[[], object]
    ) -> None:
        events = [json.dumps(chunk) for chunk in reply.chunks(request)] + ["[DONE]"]
        self._send_head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for event in events[:cut]:
            pause()
            data = f"data: {event}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        if cut is None:
            self.wfile.write(b"0\r\n\r\n")

    def _send_status(self, status: Status) -> None:
        key = self.headers.get("Authorization", "")
        message = status.message.replace("{authorization}", key)
        error = {"message": message, "type": "scripted", "param": None, "code": None}
        wait = {} if status.retry_after is None else {"Retry-After": str(status.retry_after)}
        body = json.dumps({"error": error}).encode()
        self._send_body(status.code, body, {"Content-Type": "application/json", **wait})

    def _send_body(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self._send_head(code, {**headers, "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send_head(self, code: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """Run a scripted model server; tell it what to do with `then` and `otherwise`."""
    with OpenAIServer() as server:
        yield server
