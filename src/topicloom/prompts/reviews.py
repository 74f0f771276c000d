"""What came back from a reviewer, as values; and the fixed words of a merger's prompt.

As in `parsers`, any text is read with good will.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.markup import answers_of, child, json_values, strings
from topicloom.prompts.values import score_in
from topicloom.state.session import Language

ONE_TOPIC: Mapping[Language, str] = {"en": "=== One topic ===", "zh": "=== 一个话题 ==="}
"""Line before the first topic; the prompts refer to it by its exact text."""
OTHER_TOPIC: Mapping[Language, str] = {"en": "=== Another topic ===", "zh": "=== 另一个话题 ==="}
"""Line before the second one, likewise."""

_UNKNOWN = 0.5
"""Importance of a topic of which the answer does not say it."""
_WORDS: Mapping[str, float] = {
    "high": 0.9,
    "medium": 0.5,
    "low": 0.1,
    "高": 0.9,
    "中": 0.5,
    "低": 0.1,
}
_NO = re.compile(r"\W*(?:no|false|否|不)", re.I)
_TAGS = ("name", "brief", "summary", "importance", "lasting", "topic_review")


@dataclass(frozen=True, slots=True)
class ParsedReview:
    """A reviewer's answer."""

    name: str
    """One line; "" if none was given."""
    brief: str
    """Likewise."""
    summary: str
    importance: float
    """0 to 1."""
    once: bool
    """Whether the topic is over."""


def parse_review(text: str) -> ParsedReview:
    """A topic's summary, name, brief, importance, and whether it lasts.

    Raises:
        UnusableAnswerError: If there is no summary.
    """
    for answer in answers_of(text):
        for field in _forms(answer):
            if field("summary"):
                return ParsedReview(
                    name=" ".join(field("name").split()),
                    brief=field("brief"),
                    summary=field("summary"),
                    importance=_importance(field("importance")),
                    once=_NO.match(field("lasting")) is not None,
                )
    raise UnusableAnswerError(f"no summary in an answer of {len(text)} characters")


def _forms(text: str) -> Iterator[Callable[[str], str]]:
    """The ways to look a field up: as an element, as an entry of each JSON object."""
    yield lambda name: child(text, name, *(t for t in _TAGS if t != name))
    for value in json_values(text):
        entries = strings(value)
        yield lambda name, entries=entries: entries.get(name, "")  # type: ignore[misc]


def _importance(said: str) -> float:
    """An importance in figures or words; also `8` of ten."""
    lowered = said.lower()
    share = score_in(lowered)
    if share is not None:
        return share
    return next((value for word, value in _WORDS.items() if word in lowered), _UNKNOWN)
