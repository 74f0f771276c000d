"""The embedded merger: topics are the same if the index finds them very much alike."""

from __future__ import annotations

from topicloom.roles.base import Answer, Local, MergeRequest

SURE = 0.85
"""Likeness from which two topics are taken for one. What is merged by mistake is hard to part, so
it is high: hardly any two topics of a real conversation reach it that are not the same."""


class EmbeddedMerger(Local[MergeRequest, float]):
    """Goes by the likeness alone."""

    def call(self, request: MergeRequest) -> Answer[float]:
        """1 or 0."""
        return Answer(float(request.likeness >= SURE))
