"""What came back from a selector, as values; and the fixed words of its prompt.

As in `parsers`, any text is read with good will.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.markup import answers_of, child, elements, has_tag, json_values, strings
from topicloom.state.session import Language

CANDIDATES: Mapping[Language, str] = {"en": "=== Candidates ===", "zh": "=== 候选条目 ==="}
"""Line before the candidates; the prompts refer to it by its exact text."""
LIMIT: Mapping[Language, str] = {"en": "Pick at most {limit}.", "zh": "最多选 {limit} 条。"}
"""Line that says how many may be picked."""

_ID = re.compile(r"(?:lore|narrative|event|topic)_[\w.-]*\w", re.I)
_PICKS = ("pick", "item", "entry", "id")
_LISTS = ("ids", "picks", "selected", "selection", "selected_ids", "items")
_MOST = 50
"""Ids that are looked at."""


@dataclass(frozen=True, slots=True)
class ParsedSelection:
    """A selector's answer."""

    ids: tuple[str, ...]
    """Ids as they were written, best first, each once; empty if nothing is worth picking."""
    rationale: str = ""


def parse_selection(text: str) -> ParsedSelection:
    """The ids that a selector picked. Whether they exist is not checked here.

    Raises:
        UnusableAnswerError: If there is neither a pick nor an empty selection.
    """
    for answer in answers_of(text):
        for found in (_of_tags(answer), _of_json(answer), _of_words(answer)):
            if found is not None:
                return found
    raise UnusableAnswerError(f"no selection in an answer of {len(text)} characters")


def _of_tags(text: str) -> ParsedSelection | None:
    for name in _PICKS:
        ids = _unique(e.field("id") or e.body for e in elements(text, name, "selection"))
        if ids:
            return ParsedSelection(ids, _rationale(text))
    inside = child(text, "selection")
    if not has_tag(text, "selection") or inside.startswith(("[", "{")):
        return None
    return ParsedSelection(_unique(_ID.findall(inside)), _rationale(text))


def _of_json(text: str) -> ParsedSelection | None:
    for value in json_values(text):
        listed = value
        if isinstance(value, dict):
            lists = [value[n] for n in _LISTS if isinstance(value.get(n), list)]
            if not lists:
                continue
            listed = lists[0]
        ids = _unique(v if isinstance(v, str) else strings(v).get("id", "") for v in listed)
        if ids or not listed:
            return ParsedSelection(ids, strings(value).get("rationale", "") or _rationale(text))
    return None


def _of_words(text: str) -> ParsedSelection | None:
    ids = _unique(_ID.findall(text))
    return ParsedSelection(ids) if ids else None


def _rationale(text: str) -> str:
    return " ".join(child(text, "rationale", *_PICKS, "selection").split())


def _unique(found: Iterator[str] | list[str]) -> tuple[str, ...]:
    bare = (text.strip(" \t\n[](){}\"'`“”‘’<>/,;，；、") for text in islice(found, _MOST))
    return tuple(dict.fromkeys(text for text in bare if text))
