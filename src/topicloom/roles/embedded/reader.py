"""The embedded reader: what the local index thinks of the topic's messages."""

from __future__ import annotations

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

    def call(self, request: ReadRequest) -> Answer[Reading]:
        """Read one topic by the weights that came with the request."""
        quotes: tuple[Quote, ...] = ()
        if request.prior >= _QUIET and request.weights:
            least = _WORTH * max(request.weights.values())
            found = [(request.weights.get(r.id, 0.0), r.id) for r in request.records]
            found = sorted((pair for pair in found if pair[0] >= least), reverse=True)
            quotes = tuple(Quote(id=i, weight=round(w, 4)) for w, i in found)
        return Answer(Reading(topic=request.topic.id, score=round(request.prior, 4), quotes=quotes))
