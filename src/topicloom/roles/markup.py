"""Reading XML-like and JSON answers with good will, in time linear in their length.

Models forget closing tags, quote attributes in every way there is, think aloud first and put
code fences around. So nothing here needs a well-formed document: an element runs from its opening
tag to whatever can end it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from topicloom.errors import UnusableAnswerError

_LONGEST = 1_000_000
"""Characters of an answer that are looked at."""
_MOST = 20_000
"""Elements of one name that are looked at."""
_TRIES = 16
"""Places at which a JSON value may begin."""

_THOUGHTS = re.compile(r"<\s{0,3}/?\s{0,3}(?:think|thinking|reasoning)\s{0,3}>", re.I | re.A)
_WIDE_MARKUP = str.maketrans("＜＞／＝＂", '<>/="')
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))
_ATTRIBUTE = re.compile(
    r"""(?<![\w-])([A-Za-z_][\w-]{0,40})\s{0,5}[=＝:]\s{0,5}"""
    r"""(?:"([^"]*)"|'([^']*)'|“([^“”]*)”|([^\s"'“<>/]+))"""
)
# Values may hold ">" inside quotes; "<" ends the scan, which keeps all scans together linear.
_REST_OF_TAG = r"""(?P<inside>(?:[^<>"'“]++|"[^"<]*+"|'[^'<]*+'|“[^“”<]*+”)*+(?=>)|[^<>]*+)>?"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Element:
    """An element as far as it can be made out."""

    attributes: Mapping[str, str]
    """Attributes by name in lower case."""
    body: str
    """The text between the tags, markup included."""
    closed: bool = True
    """False if another of its name begins before it ends."""

    def field(self, *names: str) -> str:
        """The first of some attributes or child elements that is there, else ""."""
        return _first(self.attributes.get(n) or find_child_text(self.body, n) for n in names)


def first_of(text: str, what: str, *readers: Callable[[str], T | None]) -> T:
    """The value that the first reader finds, in the answer proper or else in all of it.

    Raises `UnusableAnswerError`, which names `what`, if none of them finds anything.
    """
    for answer in extract_answers(text):
        for read in readers:
            value = read(answer)
            if value is not None:
                return value
    raise UnusableAnswerError(f"no {what} in an answer of {len(text)} characters")


def lookups(text: str, *tags: str) -> Iterator[Callable[..., str]]:
    """Ways to look fields of an answer up: as elements, as entries of each JSON object.

    Each takes the names that a field may have, and gives the first that holds anything, else "".
    `tags` name all elements: each ends one before it that is never closed.
    """
    yield lambda *names: _first(
        find_child_text(text, n, *(t for t in tags if t != n)) for n in names
    )
    for value in find_json_values(text):
        entries = stringify_values(value)
        yield lambda *names, entries=entries: _first(entries.get(n, "") for n in names)


def extract_answers(text: str) -> Iterator[str]:
    """The answer proper: what follows the thoughts, and should that hold nothing, all of it."""
    text = text[:_LONGEST]
    if "<" not in text and "＜" in text:
        text = text.translate(_WIDE_MARKUP)
    *thoughts, last = _THOUGHTS.split(text)
    yield last.strip()
    if thoughts:
        yield _THOUGHTS.sub("", text).strip()


def find_elements(text: str, name: str, *enders: str) -> Iterator[Element]:
    """Elements of a name, in order; they do not nest.

    Tags of `enders` end one that is never closed.
    """
    if "<" not in text:
        return
    opening = re.compile(rf"<\s{{0,3}}{name}(?![\w-]){_REST_OF_TAG}", re.I | re.A)
    ends = "".join(rf"|<\s{{0,3}}/?\s{{0,3}}{ender}(?![\w-])" for ender in enders)
    end = re.compile(rf"<\s{{0,3}}/\s{{0,3}}{name}\b{ends}", re.I | re.A)
    found = list(islice(opening.finditer(text), _MOST))
    limits = [*(m.start() for m in found), len(text)][1:]
    for match, limit in zip(found, limits, strict=True):
        closed = end.search(text, match.end(), limit)
        inside = match["inside"]
        empty = inside.endswith("/")
        body = "" if empty else text[match.end() : closed.start() if closed else limit]
        ended = empty or closed is not None or limit == len(text)
        yield Element(_parse_attributes(inside), body.strip(), ended)


def find_child_text(text: str, name: str, *enders: str) -> str:
    """Plain text of the first element of a name that ends and holds anything, else "".

    Between two opening tags may stand anything: an answer, or words on how it will be given.
    """
    return _first(unescape(e.body) for e in find_elements(text, name, *enders) if e.closed)


def unescape(text: str) -> str:
    return _ENTITY.sub(lambda m: _ENTITIES[m[0]], text).strip()


def has_tag(text: str, name: str) -> bool:
    """True if an element of the name opens anywhere."""
    return re.search(rf"<\s{{0,3}}{name}(?![\w-])", text, re.I | re.A) is not None


def find_json_values(text: str) -> Iterator[Any]:
    """JSON objects and arrays in a text, and the objects right inside each object.

    Models like to wrap an answer in an object named after it. At most a few places are tried.
    """
    decoder = json.JSONDecoder()
    position = 0
    for _ in range(_TRIES):
        opening = min((p for c in "{[" if (p := text.find(c, position)) >= 0), default=-1)
        if opening < 0:
            return
        try:
            value, position = decoder.raw_decode(text, opening)
        except (ValueError, RecursionError):
            position = opening + 1
        else:
            yield value
            if isinstance(value, dict):
                yield from (inner for inner in value.values() if isinstance(inner, dict))


def json_entries(text: str, *names: str) -> Iterator[Element]:
    """The objects of the list under one of some names, or of a list that is the whole answer."""
    for value in find_json_values(text):
        listed = value
        if isinstance(value, dict):
            listed = next((value[n] for n in names if isinstance(value.get(n), list)), [value])
        for entry in listed:
            yield Element(stringify_values(entry), "")


def stringify_values(value: object) -> dict[str, str]:
    """The scalar entries of a JSON object as strings, by key in lower case."""
    if not isinstance(value, dict):
        return {}
    return {str(k).lower(): _stringify(v) for k, v in value.items()}


def _first(values: Iterable[str]) -> str:
    return next((value for value in values if value), "")


def _stringify(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return "\n".join(_stringify(v) for v in value if not isinstance(v, list))
    if isinstance(value, float):
        return f"{value:f}"
    # An integer of very many digits has no string (the interpreter's own limit).
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**12:
        return str(value)
    return ""


def _parse_attributes(inside: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(inside[:4000]):
        value = next((v for v in match.groups()[1:] if v is not None), "")
        found.setdefault(match[1].lower(), unescape(value))
    return found
