"""How long clients may take: whoever sends or reads a byte a second holds a connection for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 20.0
"""Seconds for the head of a request, from its first byte or from the connection on."""
BODY_SECONDS = 20.0
"""Seconds for the body of a request, and one more for each `BODY_PACE` bytes that have come."""
BODY_PACE = 10_000
READ_SECONDS = 60.0
"""Seconds in which a client reads what it was sent: a piece of a stream, or a whole answer."""


async def read_in_time(
    parts: AsyncIterator[bytes], seconds: float = BODY_SECONDS
) -> AsyncIterator[bytes]:
    """The parts of a request's body; raises `HTTPException` once the client takes too long."""
    loop, came = asyncio.get_running_loop(), 0
    began = loop.time()
    while True:
        left = began + seconds + came / BODY_PACE - loop.time()
        try:
            part = await asyncio.wait_for(anext(parts, None), max(0.0, left))
        except TimeoutError:
            said = f"the request took more than {loop.time() - began:.0f} seconds to come"
            raise HTTPException(408, said, {"Connection": "close"}) from None
        if part is None:
            return
        came += len(part)
        yield part


class TimedProtocol(H11Protocol):
    """HTTP as uvicorn speaks it; connections of clients that take too long are closed."""

    head_seconds, read_seconds = HEAD_SECONDS, READ_SECONDS
    _head: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Whatever the system does not take at once is waited for, so that the wait has an end.
        transport.set_write_buffer_limits(high=0)
        self._time_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_head()

    def _time_head(self) -> None:
        """Time a head as long as there is no request whose answer is not complete."""
        reads_head = self.cycle is None or self.cycle.response_complete
        if reads_head and self._head is None:
            self._head = self.loop.call_later(self.head_seconds, self.transport.abort)
        elif not reads_head:
            _cancel(self._head)
            self._head = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._head)
        _cancel(self._reader)
        super().connection_lost(exc)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer:
        timer.cancel()
