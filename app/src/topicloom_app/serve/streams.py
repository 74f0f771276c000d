"""Streams of answers, with comments that tell a waiting client that the turn goes on.

This is not done by sse-starlette: when the server is told to stop, it ends streams whose turns are
to be finished, and on import it replaces a method of uvicorn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.responses import StreamingResponse

from topicloom_app.serve.turns import Answered, Part, Writer
from topicloom_app.serve.web import describe_error

_COMMENT = ": still at it\n\n"
"""A comment of server-sent events, which clients pass over."""
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Proxies are to pass events on at once."""


class Parts:
    """Makes the parts of an answer in a task of its own, which a wait that ends does not end."""

    def __init__(self, parts: AsyncGenerator[Part], grace: float = 10.0) -> None:
        """Begin to make them; `close` ends that, within `grace` seconds."""
        self._queue: asyncio.Queue[Part | Exception] = asyncio.Queue()
        self._grace, self._begun, self._left = grace, False, False
        self._closing: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._make(parts))

    async def _make(self, parts: AsyncGenerator[Part]) -> None:
        try:
            async with aclosing(parts) as made:
                async for part in made:
                    self._begun = True
                    self._queue.put_nowait(part)
                    if self._left and not isinstance(part, Answered):
                        return
        except Exception as error:  # noqa: BLE001 - `next` raises it for its caller
            self._queue.put_nowait(error)

    async def next(self, seconds: float | None = None) -> Part | None:
        """The next part, None if there is none within some seconds; raises what making it raises.

        An `Answered` is the last.
        """
        try:
            part = await asyncio.wait_for(self._queue.get(), seconds)
        except TimeoutError:
            return None
        if isinstance(part, Exception):
            raise part
        return part

    async def close(self) -> None:
        """End the turn, if it still goes on, and wait until it has ended."""
        self._closing = self._closing or asyncio.create_task(self._end())
        await asyncio.shield(self._closing)

    async def _end(self) -> None:
        """End the turn at once if it has no part yet, otherwise after the next part.

        A turn whose reply is complete is just being stored: it must be stored as a whole.
        """
        self._left = True
        if self._begun:
            await asyncio.wait({self._task}, timeout=self._grace)
        self._task.cancel()
        await asyncio.wait({self._task})


async def answer_whole(parts: Parts, writer: Writer) -> dict[str, object]:
    """The answer in one piece; raises what the turn raises."""
    try:
        while not isinstance(part := await parts.next(), Answered):
            pass
        return writer.write_whole(part)
    finally:
        await parts.close()


async def answer_in_pieces(parts: Parts, writer: Writer, heartbeat: float) -> StreamingResponse:
    """The answer as server-sent events.

    An error within the first `heartbeat` seconds is raised, so that the client gets a status. After
    that the headers are sent, and a comment whenever nothing else was sent for so long. A later
    error is the last event.
    """
    try:
        first = await parts.next(heartbeat)
    except BaseException:  # a cancellation too: the turn must not go on for nobody
        await parts.close()
        raise
    events = _write_events(parts, first, writer, heartbeat)
    return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)


async def _write_events(
    parts: Parts, part: Part | None, writer: Writer, heartbeat: float
) -> AsyncIterator[str]:
    try:
        yield writer.begin()
        while not isinstance(part, Answered):
            yield _COMMENT if part is None else writer.write_piece(part)
            part = await parts.next(heartbeat)
        yield writer.end(part)
    except Exception as error:  # noqa: BLE001 - the client gets it, and the log
        failure = describe_error(error)
        yield writer.fail(failure.status, failure.message)
    finally:
        await parts.close()
