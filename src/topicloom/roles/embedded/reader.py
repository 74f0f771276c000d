"""The embedded reader: what the local index thinks of the topic's messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from topicloom.roles.base import Answer, Local, ReadRequest
from topicloom.state.recall import Quote, Reading

_QUIET = 0.3
"""Below this score a reader hands over nothing but the score (spec 000, 4.2)."""
_WORTH = 0.4
"""Share of the best message's worth from which others are handed over: somewhat more than fits
the budget, which decides."""


class EmbeddedReader(Local[ReadRequest, Reading]):
    """Scores a topic by its best messages and quotes them by weight.

    It understands nothing: what it hands over is what words and vectors find.
    """

    by_index: ClassVar[bool] = True
    """What it hands over is in the index: topics need not be awake for it."""

    def call(self, request: ReadRequest) -> Answer[Reading]:
        """Read one topic by the weights that came with the request."""
        worth = {r.id: request.weights[r.id] for r in request.records if r.id in request.weights}
        best = max(request.weights.values(), default=0.0)
        return Answer(read_by_worth(request.topic.id, request.prior, worth, best))


def read_by_worth(topic: str, prior: float, worth: Mapping[str, float], best: float) -> Reading:
    """What a topic has to say for a query, by what the index found.

    Args:
        topic: Its id.
        prior: Its relevance, 0 to 1.
        worth: Worth of its messages, by short id, 0 to 1.
        best: Worth of the best message of all topics.
    """
    found: list[tuple[float, str]] = []
    if prior >= _QUIET:
        found = sorted(((w, i) for i, w in worth.items() if w >= _WORTH * best), reverse=True)
    quotes = tuple(Quote(id=i, weight=round(w, 4)) for w, i in found)
    return Reading(topic=topic, score=round(prior, 4), quotes=quotes)
