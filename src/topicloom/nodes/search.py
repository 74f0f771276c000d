"""Searching the index window: for `activate_topic` and for amnesia cues."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from topicloom.effects import Step
from topicloom.index.time_expressions import Days, parse_when
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import dumped
from topicloom.nodes.workspace import Workspace
from topicloom.roles.archive_search import ArchiveQuery
from topicloom.roles.base import Role
from topicloom.roles.calls import ask_first, ask_role
from topicloom.roles.router import ROUTER, Route, RouteRequest
from topicloom.state.activation import ActivationPolicy, activate_candidates, ambiguous
from topicloom.state.hierarchy import add_full_names
from topicloom.state.lifecycle import mark_active
from topicloom.state.receipt import Call
from topicloom.state.session import Search, SearchRequest, Session, Turn
from topicloom.state.topics import Topic, select_shown
from topicloom.storage.sessions import SessionStore

Found = tuple[Session, Turn, list[dict[str, Any]]]
"""The session with the woken topics, the turn with the search, and the calls that were made."""


@dataclass(frozen=True, slots=True)
class TopicSearch:
    """Finds topics by their briefs and wakes them by rank."""

    deps: Deps
    archive: Role[ArchiveQuery, Route] | None = None
    """Asked for archived topics, last of all."""

    def search(
        self,
        workspace: Workspace,
        session: Session,
        turn: Turn,
        request: SearchRequest,
        *,
        deep: bool,
    ) -> Step[Found]:
        """Search, wake what is found, and say so in the turn.

        Args:
            workspace: Of the session.
            session: With the topics that are active already.
            turn: The turn so far.
            request: What to look for.
            deep: Whether the threshold is relaxed: better one topic too many than amnesia.
        """
        settings = self.deps.settings
        policy = settings.activation
        if deep:
            policy = policy.relaxed(settings.deep_share)
        days = parse_when(request.when, self.deps.clock()) if request.when else None
        topics = self._candidates(workspace, session, request, days)
        calls: list[Call] = []
        route = yield from self._routed(workspace, session, request, topics, days, calls)
        asked = {t.id for t in topics if request.include_archived}
        if not _finds(session, route, policy):
            led = yield from self._led(workspace, session, request, days, calls)
            asked |= led.keys()
            reason = "" if led else route.reason
            route = Route({**route.relevance, **led}, reason)
        return (
            *self._woken(workspace, session, turn, request, days, route, policy, asked=asked),
            dumped(calls),
        )

    def _candidates(
        self, workspace: Workspace, session: Session, request: SearchRequest, days: Days | None
    ) -> list[Topic]:
        table = workspace.store.topic_table(session)
        topics = table.open() + (table.archived() if request.include_archived else [])
        if days is not None:
            index = workspace.store.days(session)
            within = {t for day, ids in index.items() if day in days for t in ids}
            topics = [t for t in topics if t.id in within]
        return topics

    def _routed(
        self,
        workspace: Workspace,
        session: Session,
        request: SearchRequest,
        topics: Sequence[Topic],
        days: Days | None,
        calls: list[Call],
    ) -> Step[Route]:
        """What the router says of the candidates, or its stand-in; calls are added to `calls`."""
        table = workspace.store.topic_table(session)
        # Up to date already, but for a turn that another process began.
        index = workspace.indexed(table)
        archived = request.include_archived
        priors = index.search(request.query, days, include_archived=archived).topics
        shown = select_shown(topics, priors, self.deps.settings.index_topics)
        if not shown:
            return Route({}, "there is no topic to search")
        question = RouteRequest(
            session=session.id,
            query=request.query,
            tail=workspace.store.records(session, session.count - 5),
            topics=add_full_names(shown, table.topics),
            priors={t.id: priors.get(t.id, 0.0) for t in shown},
            when=str(days) if days else None,
            language=session.language,
        )
        roles = self.deps.roles
        routers = roles.in_turn(ROUTER)
        answer = yield from ask_first("router", routers, question, calls)
        if answer is not None:
            return _restricted(answer, {t.id for t in shown})
        return Route({}, "no router answered")

    def _led(
        self,
        workspace: Workspace,
        session: Session,
        request: SearchRequest,
        days: Days | None,
        calls: list[Call],
    ) -> Step[dict[str, float]]:
        """Relevance of the archived topics that the archive's index leads to, if there is one."""
        if self.archive is None:
            return {}
        everything = request.model_copy(update={"include_archived": True})
        candidates = self._candidates(workspace, session, everything, days)
        refs = {
            t.id: frozenset(workspace.store.log.refs(t.chain, t.head))
            for t in candidates
            if t.status == "archived"
        }
        if not refs:
            return {}
        query = ArchiveQuery(session.id, request.query, refs)
        answer, call = yield from ask_role("router", self.archive, query)
        calls.append(call)
        return _restricted(answer, refs).relevance if answer is not None else {}

    def _woken(
        self,
        workspace: Workspace,
        session: Session,
        turn: Turn,
        request: SearchRequest,
        days: Days | None,
        route: Route,
        policy: ActivationPolicy,
        *,
        asked: Collection[str],
    ) -> tuple[Session, Turn]:
        """The session with what was found, and the turn that says so."""
        relevance = route.relevance
        session, turn = wake(workspace.store, session, turn, relevance, policy, asked=asked)
        best = sorted(relevance, key=lambda t: -relevance[t])
        search = Search(
            query=request.query,
            when=request.when,
            days=days.ends if days else None,
            archived=request.include_archived,
            found=tuple(t for t in best if t in session.active),
            candidates=ambiguous(relevance, policy),
            reason=route.reason,
        )
        update = {"searches": (*turn.searches, search), "request": None}
        return session, turn.model_copy(update=update)


def _restricted(route: Route, offered: Collection[str]) -> Route:
    """A route to nothing but what was offered; relevance over 1 is 1."""
    found = {t: min(s, 1.0) for t, s in route.relevance.items() if t in offered and s > 0}
    return replace(route, relevance=found)


def _finds(session: Session, route: Route, policy: ActivationPolicy) -> bool:
    """Whether any topic of a route is active already or would wake."""
    active = activate_candidates(session.active, route.relevance, policy).active
    return not route.relevance.keys().isdisjoint(active)


def wake(
    store: SessionStore,
    session: Session,
    turn: Turn,
    relevance: Mapping[str, float],
    policy: ActivationPolicy,
    *,
    asked: Container[str] = (),
) -> tuple[Session, Turn]:
    """Wake topics, as far as there is room for them; others may fall asleep for it.

    Args:
        store: The session's storage.
        session: With the topics that are active already.
        turn: The turn so far.
        relevance: Relevance of topics, 0 to 1.
        policy: The grey scale.
        asked: Topics that the user asked for: nothing else revives archived ones.

    Returns:
        The session with the topics, and the turn that says which woke and fell asleep, and that
        those that woke have to be read.

    Raises:
        TransitionError: If a topic cannot wake.
    """
    result = activate_candidates(session.active, relevance, policy)
    rows = {t: store.topic_table(session)[t] for t in result.woken}
    awake = {t: mark_active(row, session.active, asked=t in asked) for t, row in rows.items()}
    session = store.save_topics(session, [awake[t] for t, row in rows.items() if awake[t] != row])
    return session.model_copy(update={"active": result.active}), turn.model_copy(
        update={
            "unread": result.woken,
            "woken": (*turn.woken, *result.woken),
            "slept": (*turn.slept, *result.slept),
        }
    )
