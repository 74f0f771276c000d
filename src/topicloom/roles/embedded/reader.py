"""The embedded reader: what the local index thinks of the topic's messages."""

from __future__ import annotations

from topicloom.roles.base import Answer, Local, ReadRequest
from topicloom.state.recall import Quote, Reading

_QUIET = 0.3
"""Below this score a reader hands over nothing but the score (spec 000, 4.2)."""
_QUOTES = 60
"""Originals handed over at most; the budget decides how many of them are quoted."""


class EmbeddedReader(Local[ReadRequest, Reading]):
    """Scores a topic by its best messages and quotes them by weight.

    It understands nothing: what it hands over is what words and vectors find.
    """

    def call(self, request: ReadRequest) -> Answer[Reading]:
        """Read one topic by the weights that came with the request."""
        quotes: tuple[Quote, ...] = ()
        if request.prior >= _QUIET:
            found = [
                (r.id, request.weights[r.id]) for r in request.records if r.id in request.weights
            ]
            found.sort(key=lambda pair: -pair[1])
            quotes = tuple(Quote(id=i, weight=w) for i, w in found[:_QUOTES])
        return Answer(Reading(topic=request.topic.id, score=request.prior, quotes=quotes))
