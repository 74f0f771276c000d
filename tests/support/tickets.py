"""A recall source of an application: the least that works, one to begin from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from topicloom import RecallHit, RecallQuery

PRINTER = "The printer on floor two jams when the paper is damp. We dried it, and it works."


@dataclass
class Tickets:
    """The example of `RecallSource`, over a list."""

    kind: str = "ticket"
    purpose: str = "tickets of the help desk"
    knowledge: bool = False
    hits: Sequence[Any] = (RecallHit("T/7", PRINTER, 0.9, title="Printer jams", tags=("solved",)),)
    queries: list[RecallQuery] = field(default_factory=list)

    def search(self, query: RecallQuery) -> Sequence[RecallHit]:
        self.queries.append(query)
        return self.hits
