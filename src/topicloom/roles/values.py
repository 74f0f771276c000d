"""Scores, ids and verdicts as models write them, and the repairs of their answers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, islice

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.loader import load_patterns
from topicloom.roles.markup import extract_answers
from topicloom.state.folding import fold
from topicloom.state.recall import parse_message_number

_NUMBER = re.compile(
    r"(?P<minus>(?<![a-z0-9])[-−])?"
    r"(?P<value>[0-9]{1,12}+(?!\.\s*\Z)(?:[.,][0-9]{1,20})?(?:e[-+]?[0-9]{1,2})?|\.[0-9]{1,20})"
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
_EXAMPLES = 5
"""Repairs of a kind that are named."""
_LONGEST_LIST = 20_000
"""Characters of a list of ids that are looked at."""


def parse_score(text: str) -> float | None:
    """The first number in a text as a share, 0 to 1.

    `0.85`, `.85`, `0,85`, `85 %`, `８５％`, `8/10` are shares. A bare number over 1 is none: it
    may be of ten or of a hundred. Nor is `0.` at the end: an answer that was cut there.
    """
    match = _NUMBER.search(fold(text[:400]))
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


def parse_message_ids(text: str, most: int) -> tuple[str, ...]:
    """Short ids of messages in a text, each once, in order of mention; cut after `most`.

    They are written as `parse_message_ranges` says.
    """
    ranges = (
        range(parse_message_number(first), parse_message_number(last) + 1)
        for first, last in parse_message_ranges(text)
    )
    numbers = islice(chain.from_iterable(ranges), most)
    return tuple(dict.fromkeys(f"m{n}" for n in numbers))


def parse_message_ranges(text: str) -> tuple[tuple[str, str], ...]:
    """First and last short id of each range of messages in a text, in order of mention.

    `m42`, `[M42]`, `msg-042`, `message 42`, `m42-m45` and lists of these in any punctuation; bare
    numbers if the text holds nothing but numbers. A message is a range of its own.
    """
    folded = fold(text[:_LONGEST_LIST])
    found = [(int(m[1]), int(m[2] or m[3] or m[1])) for m in _MESSAGES.finditer(folded)]
    if not found and _BARE.fullmatch(folded):
        found = [(int(n), int(n)) for n in _DIGITS.findall(folded)]
    return tuple((f"m{first}", f"m{max(first, last)}") for first, last in found if first > 0)


def parse_topic_id(text: str) -> str | None:
    """The short id of the first topic in a text: `t3` of `[T3]`, `topic-003` or a bare `3`."""
    return next(iter(parse_topic_ids(text, 1)), None)


def parse_topic_ids(text: str, most: int) -> tuple[str, ...]:
    """The first `most` topic ids in a text, each once: `t7, topic-009`, or bare numbers."""
    folded = fold(text[:200]).strip()
    numbers = [m[1] for m in _TOPIC.finditer(folded)]
    if not numbers and _BARE.fullmatch(folded):
        numbers = _DIGITS.findall(folded)
    return tuple(dict.fromkeys(f"t{int(n)}" for n in numbers))[:most]


_LONGEST_VERDICT = 4_000
"""Characters of an answer that are looked at."""

_VERDICTS, _ = load_patterns("cues/verdicts")
_QUESTION, _LABELLED, _LEADING, _MENTIONED = (
    re.compile(_VERDICTS[name], re.I) for name in ("question", "labelled", "leading", "mentioned")
)
_LOUD = re.compile(_VERDICTS["loud"])


def parse_verdict(text: str) -> bool:
    """True if a model says yes; raises `UnusableAnswerError` if it says neither, or both.

    What is said under a label such as "Answer:" counts most, then a capital YES or NO, then the
    first word, then a yes or no anywhere. Where these are of both kinds, the next is looked at.
    """
    for answer in extract_answers(text):
        said = _QUESTION.sub(" ", unicodedata.normalize("NFKC", answer[-_LONGEST_VERDICT:]))
        leading = _LEADING.match(said)
        for found in (
            _LABELLED.finditer(said),
            _LOUD.finditer(said),
            [leading] if leading else [],
            _MENTIONED.finditer(said),
        ):
            verdict = _common_verdict(found)
            if verdict is not None:
                return verdict
    raise UnusableAnswerError(f"no yes or no in an answer of {len(text)} characters")


def _common_verdict(found: Iterable[re.Match[str]]) -> bool | None:
    kinds = {match.lastgroup in ("yes", "same") for match in found}
    return kinds.pop() if len(kinds) == 1 else None


def note_repairs(things: Sequence[str], one: str, many: str) -> tuple[str, ...]:
    """A line that counts some repairs and names the first few; none if there are none.

    `one` and `many` are words such as "id is not in the topic" and "ids are not in the topic".
    """
    if not things:
        return ()
    named = ", ".join(things[:_EXAMPLES]) + (", ..." if len(things) > _EXAMPLES else "")
    return (f"{len(things)} {one if len(things) == 1 else many}: {named}",)
