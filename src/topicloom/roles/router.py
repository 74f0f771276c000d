"""The router: it finds topics by their briefs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.windows import RESERVE, PromptWindow, recent_text, topic_listing
from topicloom.effects import Step
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import ChatRole
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
from topicloom.roles.values import note_repairs, parse_score, parse_topic_id, parse_topic_ids
from topicloom.state.fence import fence_line
from topicloom.state.language import Language
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

_REASON = 300
"""Characters of a reason."""
FAINT = 0.2
"""Relevance by the index under which a topic is not what was meant."""
_ENDS = (r"/\s{0,3}matched_topics", r"/\s{0,3}topic_routing", r"matched_topics\s{0,3}/")
"""Ends of an answer."""
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
    """The words to look for."""
    tail: Sequence[StoredMessage]
    """The newest messages."""
    topics: Sequence[Topic]
    """Candidates, the likeliest by the local index first."""
    priors: Mapping[str, float]
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
    """The reason why nothing was found."""
    alternatives: tuple[str, ...] = ()
    """Topics of which only one is meant, where it cannot tell which."""
    seen: int | None = None
    """Number of the first candidates that it looked at, at least one; None for all."""

    def __post_init__(self) -> None:
        # A router that looked at nothing has failed: its stand-in is asked, and it is not again.
        if self.seen is not None and self.seen < 1:
            raise ValueError(f"a router has to look at one topic at least, not {self.seen}")


class Router(Role[RouteRequest, Route], Protocol):
    """Finds the topics that a query means, from their briefs."""


class ChatRouter(ChatRole[RouteRequest, Route]):
    """Searches the briefs by a chat model."""

    role = "router"

    def step(self, request: RouteRequest) -> Step[Answer[Route]]:
        """Find the topics among those whose briefs fit; ids that are no candidates are dropped.

        An answer of nothing else is none.
        """
        window = self._chat.prompt_window
        # A third is for the conversation.
        room = window.room(self.role, request.language, request.query) * 2 // 3 - RESERVE
        sizes = (window.counter.text(f"{_head(t)}: {t.brief}\n") for t in request.topics)
        fitting = list(takewhile(lambda total: total <= room, accumulate(sizes)))
        page = request.topics[: len(fitting) or 1]
        candidates = {t.id for t in page}

        def parse(text: str) -> Route:
            route = parse_routing(text)
            if route.relevance and candidates.isdisjoint(route.relevance):
                raise UnusableAnswerError("no topic that it names is a candidate")
            return route

        prompt = build_router_prompt(replace(request, topics=page), window)
        answer = yield from self.ask(request, "router", prompt, parse, "<topic_routing>")
        relevance = {t: v for t, v in answer.value.relevance.items() if t in candidates}
        unknown = [t for t in answer.value.relevance if t not in candidates]
        repairs = note_repairs(unknown, "topic is no candidate", "topics are no candidates")
        reason = clip(answer.value.reason, _REASON)
        seen = len(page) if len(page) < len(request.topics) else None
        route = Route(relevance, reason, answer.value.alternatives, seen)
        return Answer(route, remarks=answer.remarks + repairs)


def build_router_prompt(request: RouteRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which topics are searched; the topics stand last."""
    counter, language = window.counter, request.language
    words = get_wording(language)
    room = window.room("router", language)
    recent = recent_text(request.tail, window, language, room // 3)
    days = [words.days.format(days=fence_line(request.when))] if request.when else []
    wanted = [words.looking_for, fence_line(request.query), *days]
    heads = list(map(_head, request.topics))
    left = room - counter.text(recent) - counter.text("\n".join(wanted))
    listed = topic_listing(heads, request.topics, counter, left) or words.nothing
    last = "\n".join([*wanted, words.topics, listed])
    return window.messages("router", language, recent or words.nothing, last)


def _head(topic: Topic) -> str:
    days = f" ({topic.days})" if topic.days else ""
    return f"[{topic.id}] {fence_line(topic.name)}{days}"


def parse_routing(text: str) -> Route:
    """The topics that a router found, or its reason for finding none; ids may be made up.

    Raises `UnusableAnswerError` if there is neither, nor an empty result.
    """
    return first_of(text, "topic routing", _parse_route_tags, _parse_route_json)


def _parse_route_tags(text: str) -> Route | None:
    relevance = _parse_relevances(find_elements(text, "topic", "matched_topics", "topic_routing"))
    reason = find_child_text(text, "no_match_reason", "topic_routing")
    # Without an end to it, an answer that names nothing was cut off.
    if not (relevance or reason or any(has_tag(text, end) for end in _ENDS)):
        return None
    alike = parse_topic_ids(find_child_text(text, "alternatives", "topic_routing"), most=4)
    return Route(relevance, "" if relevance else reason, alike)


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
        found = {t.id: request.priors.get(t.id, 0.0) for t in request.topics}
        found = {t: r for t, r in found.items() if r >= FAINT}
        return Answer(
            Route(found, "" if found else f"no topic has anything like “{request.query}”")
        )


ROUTER: RoleSpec[Router] = RoleSpec(
    name="router",
    purpose="finds the topics that a query means, from their briefs",
    answer_tokens=1_000,
    answers=Route,
    chat=ChatRouter,
    embedded=lambda embedder: EmbeddedRouter(),
)
