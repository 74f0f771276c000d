"""The embedded router: the local index's priors, as they are."""

from __future__ import annotations

from topicloom.roles.base import Answer, Local, Route, RouteRequest

_FAINT = 0.2
"""Relevance under which a topic is not what was meant."""


class EmbeddedRouter(Local[RouteRequest, Route]):
    """Ranks topics by what the index finds in them and in their briefs."""

    def call(self, request: RouteRequest) -> Answer[Route]:
        """Route one query."""
        relevance = {t.id: request.priors.get(t.id, 0.0) for t in request.topics}
        if request.when is not None:
            # Whoever names the time means one of the topics of that time, however faint the words.
            relevance = {t: max(r, _FAINT) for t, r in relevance.items()}
        found = {t: r for t, r in relevance.items() if r >= _FAINT}
        return Answer(
            Route(found, "" if found else f"no topic has anything like “{request.query}”")
        )
