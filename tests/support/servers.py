"""Servers in processes of their own, on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
    "LANGSMITH_TRACING_V2": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "PYTHONUNBUFFERED": "1",
}
_UNWANTED = ("TOPICLOOM_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "OPENAI_")


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], url: str, log: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server by its command, in the folder of its log; begun when `url` answers."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_UNWANTED)}
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            env={**kept, **QUIET, **environment},
            stdout=written,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for(process, url, log)
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(3_000):
        if process.poll() is not None:
            break
        with suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url):
            return
        time.sleep(0.1)
    pytest.fail(f"the server did not start:\n{log.read_text()[-3_000:]}")
