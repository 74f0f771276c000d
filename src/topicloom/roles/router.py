"""The router: it finds topics by their briefs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.windows import PromptWindow, one_line, recent_text, topic_listing
from topicloom.effects import Step
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.dialogue import ChatRole
from topicloom.roles.markup import (
    Element,
    find_child_text,
    find_elements,
    find_json_values,
    first_of,
    has_tag,
    json_entries,
    stringify_values,
)
from topicloom.roles.values import clip, note_repairs, parse_score, parse_topic_id
from topicloom.state.session import Language
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

_REASON = 300
"""Characters of a reason."""
_FAINT = 0.2
"""Relevance by the index under which a topic is not what was meant."""
_RELEVANCE: Mapping[str, float] = {
    "high": 0.9,
    "medium": 0.6,
    "low": 0.3,
    "高": 0.9,
    "中": 0.6,
    "低": 0.3,
}


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """A search for topics."""

    session: str
    query: str
    """What to look for."""
    tail: Sequence[StoredMessage]
    """The newest messages."""
    topics: Sequence[Topic]
    """Candidates: recent ones first, then those that the index found."""
    priors: dict[str, float]
    """Relevance of each by the local index, 0 to 1."""
    when: str | None
    """Days that the candidates lie in, for the model to read; None for any time."""
    language: Language


@dataclass(frozen=True, slots=True)
class Route:
    """The topics that a router found."""

    relevance: dict[str, float]
    """Relevance by topic id, 0 to 1."""
    reason: str = ""
    """Why nothing was found."""


class Router(Role[RouteRequest, Route], Protocol):
    """Finds the topics that a query means, from their briefs."""


class ChatRouter(ChatRole[RouteRequest, Route]):
    """Searches the briefs by a chat model."""

    role = "router"

    def step(self, request: RouteRequest) -> Step[Answer[Route]]:
        """Find the topics; ids that are no candidates are dropped."""
        prompt = build_router_prompt(request, self._chat.prompt_window)
        answer = yield from self.ask(request, "router", prompt, parse_routing, "<topic_routing>")
        candidates = {t.id for t in request.topics}
        relevance = {t: v for t, v in answer.value.relevance.items() if t in candidates}
        unknown = [t for t in answer.value.relevance if t not in candidates]
        repairs = note_repairs(unknown, "topic is no candidate", "topics are no candidates")
        route = Route(relevance, clip(answer.value.reason, _REASON))
        return Answer(route, answer.usage, answer.remarks + repairs)


def build_router_prompt(request: RouteRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which topics are searched; the topics stand last."""
    counter, language = window.counter, request.language
    words = get_wording(language)
    room = window.room("router", language)
    recent = recent_text(request.tail, window, language, room // 3)
    days = [words.days.format(days=request.when)] if request.when else []
    wanted = [words.looking_for, request.query, *days]
    heads = [f"[{t.id}] {one_line(t.name)}{_format_days(t)}" for t in request.topics]
    left = room - counter.text(recent) - counter.text("\n".join(wanted))
    listed = topic_listing(heads, request.topics, counter, left) or words.nothing
    last = "\n".join([*wanted, words.topics, listed])
    return window.messages("router", language, recent or words.nothing, last)


def _format_days(topic: Topic) -> str:
    first, last = topic.first_at[:10], topic.last_at[:10]
    if not first:
        return ""
    return f" ({first})" if last in ("", first) else f" ({first} .. {last})"


def parse_routing(text: str) -> Route:
    """The topics that a router found, or its reason for finding none; ids may be made up.

    Raises `UnusableAnswerError` if there is neither, nor an empty result.
    """
    return first_of(text, "topic routing", _parse_route_tags, _parse_route_json)


def _parse_route_tags(text: str) -> Route | None:
    relevance = _parse_relevances(find_elements(text, "topic", "matched_topics", "topic_routing"))
    reason = find_child_text(text, "no_match_reason", "topic_routing")
    answered = has_tag(text, "matched_topics") or has_tag(text, "topic_routing")
    if not (relevance or reason or answered):
        return None
    return Route(relevance, "" if relevance else reason)


def _parse_route_json(text: str) -> Route | None:
    relevance = _parse_relevances(json_entries(text, "matched_topics", "topics"))
    if relevance:
        return Route(relevance)
    for value in find_json_values(text):
        if isinstance(value, dict) and {"matched_topics", "no_match_reason"} & value.keys():
            return Route({}, stringify_values(value).get("no_match_reason", ""))
    return None


def _parse_relevances(found: Iterator[Element]) -> dict[str, float]:
    relevance: dict[str, float] = {}
    for element in found:
        topic = parse_topic_id(element.field("id", "topic_id"))
        if topic:
            value = _parse_relevance(element.field("relevance", "score", "relevance_score"))
            relevance[topic] = max(value, relevance.get(topic, 0.0))
    return relevance


def _parse_relevance(said: str) -> float:
    """A relevance in words or figures; medium if it says neither."""
    lowered = said.lower()
    for word, value in _RELEVANCE.items():
        if word in lowered:
            return value
    number = parse_score(said)
    return _RELEVANCE["medium"] if number is None else number


class EmbeddedRouter(LocalRole[RouteRequest, Route]):
    """Ranks topics by what the index finds in them and in their briefs."""

    def call(self, request: RouteRequest) -> Answer[Route]:
        """Route one query."""
        relevance = {t.id: request.priors.get(t.id, 0.0) for t in request.topics}
        if request.when is not None:
            # A query that names the time means one of the topics of that time.
            relevance = {t: max(r, _FAINT) for t, r in relevance.items()}
        found = {t: r for t, r in relevance.items() if r >= _FAINT}
        return Answer(
            Route(found, "" if found else f"no topic has anything like “{request.query}”")
        )


ROUTER: RoleSpec[Router] = RoleSpec(
    name="router",
    purpose="finds the topics that a query means, from their briefs",
    answers=Route,
    chat=ChatRouter,
    embedded=lambda embedder: EmbeddedRouter(),
)
