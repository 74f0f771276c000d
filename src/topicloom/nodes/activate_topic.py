"""activate_topic and amnesia: searches of all topics, for the main model and for the user."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from topicloom.context.transcript import find_named_media
from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.read_topic import plan_reading
from topicloom.nodes.step import Node, Update, dump, emit, load_readings, open_turn
from topicloom.nodes.workspace import Workspace
from topicloom.roles.archive_search import ArchiveQuery
from topicloom.roles.base import Role
from topicloom.roles.router import FAINT, Route, RouteRequest
from topicloom.roles.routing import ask_archive, ask_routers, is_sure, join_routes
from topicloom.search.message_search import Hits
from topicloom.search.time_expressions import Days, parse_when
from topicloom.state.activation import ActivationPolicy, activate_candidates, find_ambiguous
from topicloom.state.channels import SessionState
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Call
from topicloom.state.session import Lookup, Search, SearchRequest, SearchScope, Session, Turn
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.storage.topic_changes import activate_topics

ACTIVATE_TOPIC = "activate_topic"
_DEEP_SHARE = 0.5
"""Share of the activation threshold that a search asks for where something was forgotten."""


class ActivateTopic(BaseModel):
    """Look for an earlier topic of this conversation.

    Call it before any words when something is mentioned that you cannot see, and always when
    the user says that you forgot something or that it was said before.
    """

    query: str = Field(
        description="What to look for, in the user's words and language; or a line such as"
        " [image: m42], to see that image again."
    )
    when: str | None = Field(
        default=None, description='When it was talked about, if said: "last month", "上个月".'
    )
    include_archived: bool = Field(
        default=False,
        description="True if the user asks for something long put away, or if a search that found"
        " nothing says that archived topics were not searched.",
    )
    forgotten: bool = Field(
        default=False, description="True if the user holds that you forgot it, or was told before."
    )


def never_called(**arguments: object) -> str:
    """Stand for a tool that the session graph answers itself."""
    raise NotImplementedError("the session graph answers this call itself")


def make_tool(
    name: str, schema: type[BaseModel], answer: Callable[..., str] = never_called
) -> BaseTool:
    """A tool of ours as the main model sees it. What it asks for is done elsewhere."""
    return StructuredTool.from_function(
        answer, name=name, description=schema.__doc__, args_schema=schema, infer_schema=False
    )


def search_topics(
    search: TopicSearch, name: Literal["activate_topic", "amnesia"]
) -> Runnable[SessionState, Update]:
    """The node that makes the search that the model asked for, or, as `amnesia`, the one that a
    user calls for who says that something was forgotten.
    """

    def step(state: SessionState) -> Step[Update]:
        session, turn, workspace = open_turn(search.deps.workspaces, state)
        assert turn.request is not None  # the wiring comes here only with a request
        if name == "amnesia":
            emit("remembering", query=turn.query)
        else:
            emit("searching", query=turn.request.query, when=turn.request.when)
            if media := _find_media(workspace.store, session, turn.request.query):
                found = Search(query=turn.request.query, media=media)
                update = {"searches": (*turn.searches, found), "request": None}
                return dump(turn=turn.model_copy(update=update))
        queries = [turn.query, *(search.query for search in turn.searches)]
        again = (r for r in load_readings(state) if queries[r.search] == turn.request.query)
        read = {r.topic for r in again if r.source == "model"}
        return (yield from search.search(workspace, session, turn, read))

    return Node(step, name)


def _find_media(store: SessionStore, session: Session, query: str) -> tuple[str, ...]:
    """Short ids of the messages with media that a query names as `[image: m42]`."""
    numbers = map(parse_message_number, find_named_media(query))
    named = store.pick(session, (n for n in numbers if 1 <= n <= session.count))
    return tuple(message.id for message in named.values() if message.media)


@dataclass(frozen=True, slots=True)
class _Query:
    """A search under way."""

    workspace: Workspace
    session: Session
    request: SearchRequest
    days: Days | None
    """What the request's time expression means."""
    table: TopicTable
    calls: list[Call] = field(default_factory=list)

    def look_up(self, *, archived: bool) -> Hits:
        """What the index finds for it, in archived topics too if asked to."""
        days = self.days.ends if self.days else None
        lookup = Lookup(query=self.request.query, days=days, archived=archived)
        return self.workspace.look_up(self.session, lookup)

    def select_topics(self, *, archived: bool) -> list[Topic]:
        """The topics of the days that are asked for, archived ones too if they may be found."""
        topics = self.table.open() + (self.table.archived() if archived else [])
        if self.days is None:
            return topics
        by_day = self.workspace.store.days(self.session)
        within = {t for day, ids in by_day.items() if day in self.days for t in ids}
        return [t for t in topics if t.id in within]


@dataclass(frozen=True, slots=True)
class _Found:
    """What a search found, before any of it is activated."""

    query: _Query
    """What was searched for in the end."""
    route: Route
    briefs: int
    """How many topics the router looked at."""
    asked: Set[str]
    """Topics that may be activated out of the archive."""
    unsearched: int
    """How many archived topics nobody looked at."""
    missed: str
    """The days that were asked for, if nothing was said on them; else ""."""
    other_days: bool
    """True if these are of other days than the ones asked for."""
    of_days: Sequence[str] = ()
    """All topics of the days that were asked for, relevant or not."""

    @property
    def best(self) -> list[str]:
        """The topics that are relevant, the best first."""
        return self._rank(self.route.relevance)

    def _rank(self, topics: Iterable[str]) -> list[str]:
        return sorted(topics, key=lambda t: -self.route.relevance.get(t, 0.0))

    def describe(self, active: tuple[str, ...], read: int, policy: ActivationPolicy) -> Search:
        """The search as the receipt and the reply have it; `read` topics are to be read."""
        query, route, best = self.query, self.route, self.best
        dated = query.days is not None or bool(self.missed)
        alike = route.alternatives or (() if dated else find_ambiguous(route.relevance, policy))
        listed = self._rank(self.of_days) or (best if dated or alike else [])
        scope = SearchScope(
            briefs=self.briefs,
            read=read,
            unsearched=self.unsearched,
            other_days=self.other_days,
            missed=self.missed,
        )
        return Search(
            query=query.request.query,
            when=query.request.when,
            days=query.days.ends if query.days else None,
            archived=query.request.include_archived,
            found=active,
            listed=tuple(listed[: policy.ceiling]),
            candidates=alike,
            reason="" if best else route.reason,
            scope=scope,
        )


@dataclass(frozen=True, slots=True)
class TopicSearch:
    """Finds topics by their briefs and activates them by rank."""

    deps: Deps
    archive: Role[ArchiveQuery, Route] | None = None
    """Asked for archived topics, last of all."""

    def search(
        self, workspace: Workspace, session: Session, turn: Turn, read: Collection[str] = ()
    ) -> Step[Update]:
        """Make the search that the turn requests, and activate what is found.

        Topics that a model has `read` for the same query are not read again.

        Where something was forgotten the threshold is relaxed: better one topic too many. The
        archive is searched too, unless another topic is meant for sure and the index agrees.
        """
        request, settings = turn.request, self.deps.settings
        assert request is not None  # the wiring comes here only with a request
        policy = settings.activation
        if turn.amnesia or request.forgotten:
            policy = policy.scale_thresholds(_DEEP_SHARE)
        days = parse_when(request.when, session.place(self.deps.clock())) if request.when else None
        query = _Query(workspace, session, request, days, workspace.store.topic_table(session))
        found = yield from self._find(query, turn, policy)
        relevance = found.route.relevance
        session, change = activate_topics(
            workspace.store, session, relevance, policy, asked=found.asked
        )
        active = tuple(t for t in found.best if t in session.active)
        due = dict.fromkeys((*chain.from_iterable(turn.unread), *active))
        unread = tuple(t for t in due if t not in read)
        search = found.describe(active, len(unread), policy)
        update = {"searches": (*turn.searches, search), "request": None}
        turn = turn.join(change).model_copy(update=update)
        hits = workspace.look_up(session, turn.lookup)
        table = workspace.store.topic_table(session)
        turn = plan_reading(self.deps, table, session, turn, unread, hits)
        return dump(session, turn, calls=query.calls)

    def _find(self, query: _Query, turn: Turn, policy: ActivationPolicy) -> Step[_Found]:
        """The topics that may be meant: of the days, else of any, and of the archive if need be."""
        request = query.request
        topics = query.select_topics(archived=request.include_archived)
        missed = str(query.days) if query.days and not topics else ""
        other_days = bool(missed) and request.include_archived
        if missed:  # any other time will do then, but not what is put away
            request = request.model_copy(update={"include_archived": False})
            query = replace(query, request=request, days=None)
            topics = query.select_topics(archived=False)
        route, briefs = yield from self._ask_routers(query, topics)
        put_away = [t for t in query.select_topics(archived=True) if t.status == "archived"]
        if not missed and _means_archive(turn, query, route, put_away):
            request = request.model_copy(update={"include_archived": True})
            query, topics = replace(query, request=request), [*topics, *put_away]
            more, looked = yield from self._ask_routers(query, put_away)
            route, briefs = join_routes(route, more), briefs + looked
        of_days = [t.id for t in topics] if query.days else []
        if not route.relevance:  # nothing but the days was asked for
            route = replace(route, relevance=dict.fromkeys(of_days, FAINT))
        asked = looked_at = {t.id for t in topics if request.include_archived}
        active = activate_candidates(query.session.active, route.relevance, policy).active
        if not missed and route.relevance.keys().isdisjoint(active):
            archived = yield from self._ask_archive(query, put_away)
            if archived is not None:
                asked, looked_at = asked | archived.keys(), {t.id for t in put_away}
                route = replace(route, relevance={**route.relevance, **archived})
        unsearched = sum(t.id not in looked_at for t in put_away)
        return _Found(query, route, briefs, asked, unsearched, missed, other_days, of_days)

    def _ask_routers(self, query: _Query, topics: Sequence[Topic]) -> Step[tuple[Route, int]]:
        """The route among some topics, and how many the router looked at."""
        session = query.session
        question = RouteRequest(
            session=session.id,
            query=query.request.query,
            tail=query.workspace.store.messages(session, session.count - 5),
            topics=topics,
            priors=query.look_up(archived=query.request.include_archived).topics,
            when=str(query.days) if query.days else None,
            language=session.language,
        )
        known, calls = query.table.topics, query.calls
        return (yield from ask_routers(self.deps.roles, question, known, calls, self.deps.waits))

    def _ask_archive(self, query: _Query, topics: Sequence[Topic]) -> Step[dict[str, float] | None]:
        """Relevance of the topics that the archive's index leads to; None without a search."""
        if self.archive is None or not topics:
            return None
        session, store = query.session, query.workspace.store
        refs = {t.id: frozenset(store.topic_refs(session, t)) for t in topics}
        question = ArchiveQuery(session.id, query.request.query, refs)
        return (yield from ask_archive(self.archive, question, query.calls, self.deps.waits))


def _points_to(query: _Query, topics: Sequence[Topic]) -> bool:
    """True if the index finds what is looked for in some archived topics, before all others."""
    found = query.look_up(archived=True).topics
    best = max(found, key=lambda t: found[t], default=None)
    return best in {t.id for t in topics}


def _means_archive(turn: Turn, query: _Query, route: Route, put_away: Sequence[Topic]) -> bool:
    """True if the archive has to be searched too, though the request does not say so.

    A user who says that something was forgotten asks for it, wherever it is.
    """
    forgotten = (turn.amnesia or query.request.forgotten) and not query.request.include_archived
    if not (forgotten and put_away):
        return False
    return not is_sure(route) or _points_to(query, put_away)
