"""A scheduler beside code that has no event loop, such as a conversation at a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from topicloom.scheduling.scheduler import ReflectionScheduler


@contextmanager
def in_background(scheduler: ReflectionScheduler) -> Iterator[None]:
    """Run a scheduler in a thread of its own.

    What is being reflected upon at the end comes to its end, unless something was raised: then it
    is broken off, and due again the next time.
    """
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        loop = runner.get_loop()
        thread = Thread(target=loop.run_forever, name="topicloom-reflection", daemon=True)
        thread.start()

        def await_there(work: Coroutine[Any, Any, None]) -> None:
            asyncio.run_coroutine_threadsafe(work, loop).result()

        try:
            await_there(scheduler.start())
            yield
            await_there(scheduler.idle())
        finally:
            await_there(scheduler.stop(wait=False))
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
