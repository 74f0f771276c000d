"""What came back from a reflector, as values; and the fixed word of its prompt.

As in `parsers`, nothing is checked against the conversation here: ids may be made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.markup import Element, answers_of, elements, has_tag, json_values, strings
from topicloom.prompts.markup import plain as plain_text
from topicloom.prompts.values import message_ids
from topicloom.state.session import Language

KNOWN_FACTS: Mapping[Language, str] = {
    "en": "=== Known about the user ===",
    "zh": "=== 已知的用户情况 ===",
}
"""Line before the facts that are known; the prompts refer to it by its exact text."""

_MOST = 200
"""Facts that are looked at."""
_WIDEST = 64
"""Messages that one range of ids may span."""
_FACT_ID = re.compile(r"(?<![a-z0-9])f(?:act)?[\s_#.:-]{0,3}([0-9]{1,9})(?![0-9])", re.I)
_BARE = re.compile(r"[\s\[(]*([0-9]{1,9})[\s\])]*")


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """A fact as a reflector wrote it."""

    text: str
    """A sentence, on one line."""
    messages: tuple[str, ...]
    """Short ids of messages, each once, in the order given."""
    supersedes: tuple[int, ...] = ()
    """Numbers of known facts that hold no more."""


def parse_reflection(text: str) -> tuple[ParsedFact, ...]:
    """The facts of a reflector's answer; none if it says that there are none.

    Raises:
        UnusableAnswerError: If there is neither a fact nor an empty result.
    """
    for answer in answers_of(text):
        for facts in (_of_tags(answer), _of_json(answer)):
            if facts is not None:
                return facts
    raise UnusableAnswerError(f"no reflection in an answer of {len(text)} characters")


def _of_tags(text: str) -> tuple[ParsedFact, ...] | None:
    facts = _facts(elements(text, "fact", "reflection"))
    return facts if facts or has_tag(text, "reflection") else None


def _of_json(text: str) -> tuple[ParsedFact, ...] | None:
    for value in json_values(text):
        listed = value.get("facts") if isinstance(value, dict) else value
        if isinstance(listed, list):
            entries = (Element(strings(entry), "") for entry in listed)
            facts = _facts(entries)
            if facts or not listed:
                return facts
    return None


def _facts(found: Iterator[Element]) -> tuple[ParsedFact, ...]:
    return tuple(fact for element in islice(found, _MOST) if (fact := _fact(element)))


def _fact(element: Element) -> ParsedFact | None:
    said = element.field("text", "fact", "statement") or plain_text(element.body)
    text = " ".join(said.split())
    if not text:
        return None
    ids = element.field("msg_id", "msg_ids", "message_id", "message_ids", "messages", "id")
    return ParsedFact(
        text, message_ids(ids, _WIDEST), fact_numbers(element.field("supersedes", "replaces"))
    )


def fact_numbers(text: str) -> tuple[int, ...]:
    """Numbers of known facts in a text: `f2`, `[F2]`, `fact 2`, lists of these, or a bare `2`."""
    numbers = [int(n) for n in _FACT_ID.findall(text[:400])]
    bare = _BARE.fullmatch(text[:400])
    return tuple(dict.fromkeys(numbers or ([int(bare[1])] if bare else [])))
