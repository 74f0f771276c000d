"""A role that is too slow."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from topicloom import Answer, LocalRole


@dataclass
class SlowRole(LocalRole[Any, Any]):
    """Any role; it answers later than its deadline, in seconds."""

    seconds: float = 0.5
    deadline: float | None = 0.05

    def call(self, request: Any) -> Answer[Any]:
        time.sleep(self.seconds)
        return Answer(None)

    async def acall(self, request: Any) -> Answer[Any]:
        await asyncio.sleep(self.seconds)
        return Answer(None)
