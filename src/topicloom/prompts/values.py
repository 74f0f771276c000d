"""Scores and ids as models write them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_NUMBER = re.compile(
    r"(?P<minus>(?<![a-z0-9])[-−])?"
    r"(?P<value>[0-9]{1,12}(?:[.,][0-9]{1,20})?(?:e[-+]?[0-9]{1,2})?|\.[0-9]{1,20})"
    r"\s{0,3}(?P<of>%|/\s{0,3}(?P<whole>[0-9]{1,4})(?![0-9]))?"
)
_MESSAGE = r"(?:msgs?|messages?|m|消息)[ \t_#.:-]{0,3}([0-9]{1,9})(?![0-9])"
_TO = r"(?:-|–|—|~|\.{2,3}|to|到|至)"
_MESSAGES = re.compile(
    rf"(?<![a-z0-9]){_MESSAGE}"
    rf"(?:[ \t]{{0,3}}{_TO}[ \t]{{0,3}}{_MESSAGE}|{_TO}([0-9]{{1,9}})(?![0-9]))?"
)
_GAP = r"[\s,;、。\[\]()*•-]"
_BARE = re.compile(rf"{_GAP}*(?:[0-9]{{1,9}}(?:{_GAP}+|$))+")
_TOPIC = re.compile(r"(?<![a-z0-9])t(?:opic)?[\s_#.:-]{0,3}([0-9]{1,9})(?![0-9])")
_DIGITS = re.compile(r"[0-9]{1,9}")
_LONGEST_LIST = 20_000
"""Characters of a list of ids that are looked at."""


def score_in(text: str) -> float | None:
    """The first number in a text as a share, 0 to 1.

    `0.85`, `.85`, `0,85`, `85 %`, `８５％`, `8/10` are shares. A bare number over 1 is none: it
    may be of ten or of a hundred.
    """
    match = _NUMBER.search(_folded(text[:400]))
    if match is None:
        return None
    value = float(match["value"].replace(",", "."))
    if match["of"] == "%":
        value /= 100
    elif match["whole"]:
        value = value / int(match["whole"]) if int(match["whole"]) else 2.0
    if match["minus"]:
        return 0.0
    return value if value <= 1 else None


def message_ids(text: str, widest: int) -> tuple[str, ...]:
    """Short ids of messages in a text, each once, in order of mention.

    `m42`, `[M42]`, `msg-042`, `message 42`, `m42-m45` and lists of these in any punctuation;
    bare numbers if the text holds nothing but numbers.

    Args:
        text: A list of ids.
        widest: Messages that one range may span; the rest of it is dropped.
    """
    folded = _folded(text[:_LONGEST_LIST])
    numbers = list(_numbers(folded, widest))
    if not numbers and _BARE.fullmatch(folded):
        numbers = [int(n) for n in _DIGITS.findall(folded)]
    return tuple(dict.fromkeys(f"m{n}" for n in numbers if n > 0))


def topic_id(text: str) -> str | None:
    """The short id of the first topic in a text: `t3` of `[T3]`, `topic-003` or a bare `3`."""
    folded = _folded(text[:200]).strip()
    if match := _TOPIC.search(folded):
        return f"t{int(match[1])}"
    return f"t{int(folded)}" if _DIGITS.fullmatch(folded) else None


def topic_ids(text: str, most: int) -> tuple[str, ...]:
    """The short ids of the topics in a text, each once: `t7, topic-009`, or bare numbers.

    Args:
        text: A list of ids.
        most: Ids that are read at most.
    """
    folded = _folded(text[:200]).strip()
    numbers = [m[1] for m in _TOPIC.finditer(folded)]
    if not numbers and _BARE.fullmatch(folded):
        numbers = _DIGITS.findall(folded)
    return tuple(dict.fromkeys(f"t{int(n)}" for n in numbers))[:most]


def _numbers(text: str, widest: int) -> Iterator[int]:
    for match in _MESSAGES.finditer(text):
        first = int(match[1])
        last = int(match[2] or match[3] or first)
        yield from range(first, min(last, first + widest - 1) + 1) if last > first else (first,)


def _folded(text: str) -> str:
    """Full-width digits and punctuation as plain ones, in lower case."""
    return unicodedata.normalize("NFKC", text).lower()
