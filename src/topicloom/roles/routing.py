"""Asking routers which topics are meant: page by page, and in the archive."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from topicloom.effects import Step
from topicloom.roles.archive_search import ArchiveQuery
from topicloom.roles.base import Role
from topicloom.roles.calls import ask_first, ask_role
from topicloom.roles.registry import Roles
from topicloom.roles.router import ROUTER, Route, RouteRequest
from topicloom.roles.waits import Waits
from topicloom.state.activation import CLEAR
from topicloom.state.hierarchy import add_full_names
from topicloom.state.receipt import Call
from topicloom.state.topics import Topic


def ask_routers(
    roles: Roles,
    request: RouteRequest,
    known: Mapping[str, Topic],
    calls: list[Call],
    waits: Waits,
) -> Step[tuple[Route, int]]:
    """The route among the topics of a request, and how many the router looked at.

    It is asked page by page, the likeliest topics first, until one is meant for sure. Its
    stand-in takes the page that it fails at, and all after it. It is shown the full names that the
    topics have among all that are known. Adds to `calls`.
    """
    turn_waits = waits.get(request.session)
    left = sorted(add_full_names(request.topics, known), key=lambda t: t.last_at, reverse=True)
    left.sort(key=lambda t: -request.priors.get(t.id, 0.0))
    found = Route({}, "" if left else "there is no topic to search")
    while left and not is_sure(found):
        routers, asked = roles.in_turn(ROUTER), replace(request, topics=left)
        route = yield from ask_first("router", routers, asked, calls, waits=turn_waits)
        route = route or Route({}, "no router answered")
        page, left = left[: route.seen], left[route.seen or len(left) :]
        route = _restrict(route, {t.id for t in page})
        alike = found.alternatives + route.alternatives
        found = Route({**found.relevance, **route.relevance}, route.reason, alike)
    return found, len(request.topics) - len(left)


def ask_archive(
    archive: Role[ArchiveQuery, Route], query: ArchiveQuery, calls: list[Call], waits: Waits
) -> Step[dict[str, float] | None]:
    """Relevance of the topics that the archive's index leads to; None without an answer."""
    answer, call = yield from ask_role("router", archive, query, waits=waits.get(query.session))
    calls.append(call)
    return _restrict(answer, query.refs).relevance if answer is not None else None


def is_sure(route: Route) -> bool:
    """True if a topic was found that is meant for sure."""
    return max(route.relevance.values(), default=0.0) >= CLEAR


def join_routes(route: Route, more: Route) -> Route:
    """What two routes found, among different topics."""
    found = {**route.relevance, **more.relevance}
    return Route(found, route.reason or more.reason, route.alternatives + more.alternatives)


def _restrict(route: Route, offered: Collection[str]) -> Route:
    """A route to nothing but what was offered; relevance over 1 is 1."""
    found = {t: min(s, 1.0) for t, s in route.relevance.items() if t in offered and s > 0}
    alike = tuple(t for t in route.alternatives if t in found)
    return replace(route, relevance=found, alternatives=alike if len(alike) > 1 else ())
