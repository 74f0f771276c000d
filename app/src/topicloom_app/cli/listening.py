"""Listening at an address of this machine, and serving an application there."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Collection
from ipaddress import ip_address
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

from topicloom import ConfigurationError

_SECONDS = 30
"""How long turns that go on are waited for when the server is ended."""


def check_host(host: str, keys: Collection[str], variable: str) -> None:
    """Raise `ConfigurationError` if others could reach the server, and nothing keeps them out."""
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not (local or keys):
        raise ConfigurationError(
            "other machines could reach {host}: set {variable}, or leave --host at 127.0.0.1",
            host=host,
            variable=variable,
        )


def name_address(host: str, listener: socket.socket) -> str:
    """The address that a listener at a host is reached at."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there, or `ConfigurationError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise ConfigurationError(
            "cannot listen at {host}, port {port}: {why}; --port takes another, 0 any that is free",
            host=host,
            port=port,
            why=why,
        ) from error
    # asyncio sets it on sockets of its own alone; without it a body waits 40 ms behind its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def run_server(
    app: ASGIApp, listener: socket.socket, lifespan: Literal["on", "off"] = "off"
) -> None:
    """Serve until a signal ends it; what goes on is finished first."""
    # uvicorn sends itself the signal once more when it has ended: the databases are closed first.
    signal.signal(signal.SIGTERM, lambda *_: None)
    config = uvicorn.Config(
        app,
        log_level="warning",
        lifespan=lifespan,
        ws="none",
        timeout_graceful_shutdown=_SECONDS,
    )
    await uvicorn.Server(config).serve(sockets=[listener])
