"""Searching the index window: for `activate_topic` and for amnesia cues."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from topicloom.nodes.workspace import Workspace
from topicloom.perception.when import Days, parse_when
from topicloom.roles.base import Route, RouteRequest
from topicloom.roles.calls import Ask, Outcome, ask
from topicloom.roles.team import Roles
from topicloom.state.activation import ActivationPolicy, admit
from topicloom.state.hierarchy import named_in_full
from topicloom.state.lifecycle import woken
from topicloom.state.session import Search, SearchRequest, Session, Turn
from topicloom.state.topics import Topic
from topicloom.storage.sessions import ordered

Found = tuple[Session, Turn, list[dict[str, Any]]]
"""The session with the woken topics, the turn with the search, and the calls that were made."""


@dataclass(frozen=True, slots=True)
class SearchDesk:
    """Finds topics by their briefs and wakes them by rank."""

    roles: Roles
    clock: Callable[[], datetime]
    """Now, in the session's time zone."""
    activation: ActivationPolicy
    deep_share: float
    """Share of the threshold that a deep search asks for."""
    limit: int
    """Briefs that the index window is shown at most."""

    def search(
        self,
        workspace: Workspace,
        session: Session,
        turn: Turn,
        request: SearchRequest,
        *,
        deep: bool,
    ) -> Generator[Sequence[Ask], Sequence[Outcome], Found]:
        """Search, wake what is found, and say so in the turn.

        Args:
            workspace: Of the session.
            session: With the topics that are active already.
            turn: The turn so far.
            request: What to look for.
            deep: Whether the threshold is relaxed: better one topic too many than amnesia.
        """
        days = parse_when(request.when, self.clock()) if request.when else None
        topics = self._candidates(workspace, session, request, days)
        # Up to date already, but for a turn that another process began.
        roster = workspace.store.roster(session)
        priors = workspace.indexed(roster).search(request.query).topics
        shown = self._shown(topics, priors)
        calls: list[dict[str, Any]] = []
        route = Route({}, "there is no topic to search")
        if shown:
            question = RouteRequest(
                session=session.id,
                query=request.query,
                tail=workspace.store.records(session, session.count - 5),
                topics=named_in_full(shown, roster.topics),
                priors={t.id: priors.get(t.id, 0.0) for t in shown},
                when=str(days) if days else None,
                language=session.language,
            )
            for router in (self.roles.router, self.roles.fallback.router):
                answer, call = yield from ask("router", router, question)
                calls.append(call.model_dump(mode="json"))
                if answer is not None:
                    offered = {t.id for t in shown}
                    found = {
                        t: min(s, 1.0)
                        for t, s in answer.relevance.items()
                        if t in offered and s > 0
                    }
                    route = replace(answer, relevance=found)
                    break
        return (*self._wake(workspace, session, turn, request, route, deep), calls)

    def _candidates(
        self, workspace: Workspace, session: Session, request: SearchRequest, days: Days | None
    ) -> list[Topic]:
        roster = workspace.store.roster(session)
        topics = roster.open() + (roster.archived() if request.include_archived else [])
        if days is not None:
            index = workspace.store.days(session)
            within = {t for day, ids in index.items() if day in days for t in ids}
            topics = [t for t in topics if t.id in within]
        return topics

    def _shown(self, topics: Sequence[Topic], priors: Mapping[str, float]) -> list[Topic]:
        """Recent topics first, then the best of the rest by the index, up to the limit."""
        recent = ordered(topics)[: self.limit // 2]
        rest = [t for t in topics if t not in recent]
        rest.sort(key=lambda t: -priors.get(t.id, 0.0))
        return recent + rest[: self.limit - len(recent)]

    def _wake(
        self,
        workspace: Workspace,
        session: Session,
        turn: Turn,
        request: SearchRequest,
        route: Route,
        deep: bool,
    ) -> tuple[Session, Turn]:
        roster = workspace.store.roster(session)
        policy = self.activation.relaxed(self.deep_share) if deep else self.activation
        relevance = {t: s for t, s in route.relevance.items() if t in roster}
        asleep = {t: s for t, s in relevance.items() if t not in session.active}
        result = admit(session.active, asleep, policy)
        rows = [(roster[t], self._awake(roster[t], session, request)) for t in result.woken]
        changed = [after for before, after in rows if after != before]
        session = workspace.store.save_topics(session, changed)
        best = sorted(relevance, key=lambda t: -relevance[t])
        search = Search(
            query=request.query,
            when=request.when,
            found=tuple(t for t in best if t in result.active),
            candidates=_ambiguous(relevance, best, policy),
            reason=route.reason,
        )
        return session.model_copy(update={"active": result.active}), turn.model_copy(
            update={
                "searches": (*turn.searches, search),
                "request": None,
                "unread": result.woken,
                "woken": (*turn.woken, *result.woken),
                "slept": (*turn.slept, *result.slept),
            }
        )

    def _awake(self, topic: Topic, session: Session, request: SearchRequest) -> Topic:
        return woken(topic, session.active, asked=request.include_archived)


def _ambiguous(
    relevance: dict[str, float], best: Sequence[str], policy: ActivationPolicy
) -> tuple[str, ...]:
    """Topics to ask about: several alike, none of them clear."""
    if not best or relevance[best[0]] >= _CLEAR:
        return ()
    alike = [t for t in best if relevance[t] >= max(policy.base, relevance[best[0]] - _ALIKE)]
    return tuple(alike[:4]) if len(alike) > 1 else ()


_CLEAR = 0.7
"""Relevance from which a topic is meant for sure (spec 000, 4.2: "clearly relevant")."""
_ALIKE = 0.1
"""Difference of relevance within which topics can't be told apart."""
