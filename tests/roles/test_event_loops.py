"""A model that is named by a string, on one event loop after another."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from topicloom.hosting import get_text
from topicloom.roles.models import open_model


class _Lasting(BaseHTTPRequestHandler):
    """Answers, and keeps the connection open, as providers do."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "Oak."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                           "choices": [choice]}).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Lasting) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_that_ended_leaves_no_connection_to_the_next(address: str) -> None:
    model = open_model("openai:m", base_url=address, max_retries=0)
    for _ in range(3):
        assert get_text(asyncio.run(model.ainvoke("Oak?"))) == "Oak."
    del model
    gc.collect()  # what the loops left open is closed here, where nobody is warned of it
