"""The default arbiter: the trained boundary model has the last word on what it left in doubt."""

from __future__ import annotations

from topicloom.roles.base import Answer, Local
from topicloom.state.boundary import BoundaryQuestion


class TrainedArbiter(Local[BoundaryQuestion, float]):
    """Answers with the probability that the screening gave.

    The grey zone exists for those who can add something to it. Where nobody can, the likelier
    answer is the model's own, so that the zone's two thresholds become one at 0.5.
    """

    def call(self, request: BoundaryQuestion) -> Answer[float]:
        """The screening's probability, unchanged."""
        return Answer(request.prior)
