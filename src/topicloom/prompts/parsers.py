"""What came back from a model, as values.

Every parser takes any text, is pure, and either gives a value or raises
`UnusableAnswerError`. It reads the XML-like form that the prompts ask for; failing that, JSON
with the same names. Nothing is checked against the conversation here: ids may be made up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TypeVar

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.markup import (
    Element,
    answers_of,
    child,
    elements,
    has_tag,
    json_values,
    strings,
)
from topicloom.prompts.values import message_ids, score_in, topic_id, topic_ids
from topicloom.state.splitting import Assignment

T = TypeVar("T")

_WIDEST_QUOTE = 64
"""Messages that one range of quoted ids may span."""
_WIDEST_ASSIGNMENT = 10_000
"""Messages that one range of assigned ids may span."""
_MOST_REFERENCES = 4
"""Other topics that a message may belong to as well."""
_MOST_ASSIGNMENTS = 20_000
"""Assignments that are looked at."""
_RELEVANCE: Mapping[str, float] = {
    "high": 0.9,
    "medium": 0.6,
    "low": 0.3,
    "高": 0.9,
    "中": 0.6,
    "低": 0.3,
}
_LABELLED_SCORE = re.compile(r"relevance[_ ]?score\W{1,10}([0-9０-９.．eE+-]{1,20})", re.I)


@dataclass(frozen=True, slots=True)
class ParsedReading:
    """A reader's answer."""

    score: float
    """0 to 1."""
    ids: tuple[str, ...] = ()
    """Short ids of messages, each once, in the order given."""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class ParsedRoute:
    """A router's answer."""

    relevance: dict[str, float]
    """0 to 1, by short id of the topic, in the order given; empty if none matches."""
    reason: str = ""
    """Why none matches."""


@dataclass(frozen=True, slots=True)
class ParsedBrief:
    """A brief writer's answer."""

    name: str
    """One line; "" if none was given."""
    text: str


def parse_reading(text: str) -> ParsedReading:
    """A reader's score, ids and summary.

    Raises:
        UnusableAnswerError: If there is no score.
    """
    return _first(text, (_reading_of_tags, _reading_of_json, _labelled_score), "relevance score")


def parse_split(text: str) -> tuple[Assignment, ...]:
    """A splitter's assignments, one a message.

    Raises:
        UnusableAnswerError: If no message is assigned to anything.
    """
    return _first(text, (_split_of_tags, _split_of_json), "assignment")


def parse_routing(text: str) -> ParsedRoute:
    """The topics that a router found, or its reason for finding none.

    Raises:
        UnusableAnswerError: If there is neither a topic, nor a reason, nor an empty result.
    """
    return _first(text, (_route_of_tags, _route_of_json), "topic routing")


def parse_brief(text: str) -> ParsedBrief:
    """A topic's name and brief.

    Raises:
        UnusableAnswerError: If there is no brief.
    """
    return _first(text, (_brief_of_tags, _brief_of_json), "brief")


def parse_query(text: str) -> str:
    """A rewritten message.

    Raises:
        UnusableAnswerError: If there is none.
    """
    return _first(text, (_query_of_tags, _query_of_json), "query")


def _first(text: str, readers: tuple[Callable[[str], T | None], ...], what: str) -> T:
    for answer in answers_of(text):
        for read in readers:
            value = read(answer)
            if value is not None:
                return value
    raise UnusableAnswerError(f"no {what} in an answer of {len(text)} characters")


def _reading_of_tags(text: str) -> ParsedReading | None:
    siblings = ("relevance_score", "referenced_messages", "summary", "topic_result")
    for result in [*elements(text, "topic_result"), Element({}, text)]:
        score = score_in(child(result.body, "relevance_score", *siblings))
        if score is not None:
            ids = child(result.body, "referenced_messages", "summary", "topic_result")
            summary = child(result.body, "summary", "topic_result")
            return ParsedReading(score, message_ids(ids, _WIDEST_QUOTE), summary)
    return None


def _reading_of_json(text: str) -> ParsedReading | None:
    for value in json_values(text):
        entry = strings(value)
        score = score_in(entry.get("relevance_score") or entry.get("score", ""))
        if score is not None:
            ids = entry.get("referenced_message_ids") or entry.get("referenced_messages", "")
            return ParsedReading(score, message_ids(ids, _WIDEST_QUOTE), entry.get("summary", ""))
    return None


def _labelled_score(text: str) -> ParsedReading | None:
    """A score from a cut answer, or one that only says `relevance_score: 0.2`."""
    match = _LABELLED_SCORE.search(text)
    score = score_in(match[1]) if match else None
    return None if score is None else ParsedReading(score)


def _split_of_tags(text: str) -> tuple[Assignment, ...] | None:
    return _assigned(elements(text, "assignment", "topic_split"))


def _split_of_json(text: str) -> tuple[Assignment, ...] | None:
    return _assigned(_json_entries(text, "assignments", "topic_split"))


def _assigned(found: Iterator[Element]) -> tuple[Assignment, ...] | None:
    assignments = chain.from_iterable(map(_assignments, found))
    return tuple(islice(assignments, _MOST_ASSIGNMENTS)) or None


def _assignments(element: Element) -> Iterator[Assignment]:
    kind = element.field("topic").lower()
    known = topic_id(element.field("topic_id") or kind)
    name = element.field("topic_name", "name")
    if kind == "new":
        known, name = None, name or element.field("topic_id")
    if not (known or name):
        return
    brief = element.field("summary", "brief")
    also = topic_ids(element.field("also", "also_in", "references"), _MOST_REFERENCES)
    ids = element.field("msg_id", "msg_ids", "message_id", "message_ids", "id")
    for message in message_ids(ids, _WIDEST_ASSIGNMENT):
        yield Assignment(message, known, " ".join(name.split()), brief, also)


def _route_of_tags(text: str) -> ParsedRoute | None:
    relevance = _relevance(elements(text, "topic", "matched_topics", "topic_routing"))
    reason = child(text, "no_match_reason", "topic_routing")
    answered = has_tag(text, "matched_topics") or has_tag(text, "topic_routing")
    if not (relevance or reason or answered):
        return None
    return ParsedRoute(relevance, "" if relevance else reason)


def _route_of_json(text: str) -> ParsedRoute | None:
    relevance = _relevance(_json_entries(text, "matched_topics", "topics"))
    if relevance:
        return ParsedRoute(relevance)
    for value in json_values(text):
        if isinstance(value, dict) and {"matched_topics", "no_match_reason"} & value.keys():
            return ParsedRoute({}, strings(value).get("no_match_reason", ""))
    return None


def _relevance(found: Iterator[Element]) -> dict[str, float]:
    relevance: dict[str, float] = {}
    for element in found:
        topic = topic_id(element.field("id", "topic_id"))
        if topic:
            value = _relevance_of(element.field("relevance", "score", "relevance_score"))
            relevance[topic] = max(value, relevance.get(topic, 0.0))
    return relevance


def _relevance_of(said: str) -> float:
    """A relevance in words or figures; medium if it says neither."""
    lowered = said.lower()
    for word, value in _RELEVANCE.items():
        if word in lowered:
            return value
    number = score_in(said)
    return _RELEVANCE["medium"] if number is None else number


def _brief_of_tags(text: str) -> ParsedBrief | None:
    brief = child(text, "brief", "topic_brief") or child(text, "summary", "topic_brief")
    return _brief(child(text, "name", "brief", "topic_brief"), brief)


def _brief_of_json(text: str) -> ParsedBrief | None:
    for value in json_values(text):
        entry = strings(value)
        brief = entry.get("brief") or entry.get("summary", "")
        if brief:
            return _brief(entry.get("name", ""), brief)
    return None


def _brief(name: str, text: str) -> ParsedBrief | None:
    return ParsedBrief(" ".join(name.split()), text) if text else None


def _query_of_tags(text: str) -> str | None:
    return child(text, "query") or None


def _query_of_json(text: str) -> str | None:
    queries = (strings(value).get("query") for value in json_values(text))
    return next((q for q in queries if q), None)


def _json_entries(text: str, *names: str) -> Iterator[Element]:
    """The objects of the list under one of some names, or of a list that is the whole answer."""
    for value in json_values(text):
        listed = value
        if isinstance(value, dict):
            listed = next((value[n] for n in names if isinstance(value.get(n), list)), [value])
        for entry in listed:
            yield Element(strings(entry), "")
