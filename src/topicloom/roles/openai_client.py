"""The client of OpenAI's protocol for programs that run more than one event loop."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from openai import DefaultAsyncHttpxClient


class LoopClient(DefaultAsyncHttpxClient):
    """Has connections of its own on each event loop: those of one that has ended serve no other.

    So it is with every `asyncio.run` of a script, a notebook or a test.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._options = options
        self._by_loop = WeakKeyDictionary[asyncio.AbstractEventLoop, DefaultAsyncHttpxClient]()

    async def send(self, request: Any, **options: Any) -> Any:
        """Send a request from the running loop; see the base."""
        loop = asyncio.get_running_loop()
        client = self._by_loop.get(loop)
        if client is None:
            client = self._by_loop[loop] = DefaultAsyncHttpxClient(**self._options)
        return await client.send(request, **options)


@cache
def get_loop_client() -> LoopClient:
    """The client of all models: one costs some 30 ms, most of them for the list of certificates.

    It has no time-out of its own; models send theirs with each request.
    """
    return LoopClient()
