"""A model's yes or no, in whatever dress: markup, thoughts, a sentence, English or Chinese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from topicloom.errors import UnusableAnswerError
from topicloom.prompts.markup import answers_of

_LONGEST = 4_000
"""Characters of an answer that are looked at."""

_QUESTION = re.compile(
    r"(?<![a-z])yes\W{0,4}(?:(?:or|and|或者?|和)\W{0,4})?no(?![a-z])|是否[^。!?:\n]{0,40}[?:]", re.I
)
"""The question's own "YES / NO", or its "是否……", said again before the answer or instead of it."""
_YES = r"(?:yes|true)(?![a-z])|是(?!否|不是|新|一个新|另)|属于|对(?:的|(?!\w))|有关|相关|同一"
_NO = (
    r"(?:no(?! ?[a-z])|false)(?![a-z])"
    r"|不是|不属于|不算|不相关|不对|不(?!\w)|并非|否|无关|没有关系"
)
_VERDICT = rf"(?:(?P<yes>{_YES})|(?P<no>{_NO}))"
_LABEL = (
    r"(?:answer|verdict|conclusion|output|result|答案|结论|输出|判断|回答|结果)"
    r"[\"'*_`]{0,4}\s{0,3}(?:is(?![a-z])|:|=|[是为]\s{0,3}:?)[\W_]{0,8}"
)
_LABELLED = re.compile(_LABEL + _VERDICT, re.I)
_LOUD = re.compile(r"(?<![A-Za-z])(?:(?P<yes>YES)|(?P<no>NO))(?![A-Za-z])")
_LEADING = re.compile(r"[\W_]{0,16}" + _VERDICT, re.I)
_MENTIONED = re.compile(
    r"(?<![a-z])(?:(?P<yes>yes|true)|(?P<no>no(?! ?[a-z])|false))(?![a-z])"
    r"|(?P<same>(?<!不)(?:是|属于)同一)"
    r"|(?P<other>不(?:是|属于)同一|不同的?任务|是一?个?新的?任务|无关)",
    re.I,
)


def parse_verdict(text: str) -> bool:
    """Whether a model says yes.

    What is said under a label such as "Answer:" counts most, then a capital YES or NO, then the
    first word, then a yes or no anywhere. Where these are of both kinds, the next of them is
    looked at.

    Raises:
        UnusableAnswerError: If it says neither, or both.
    """
    for answer in answers_of(text):
        said = _QUESTION.sub(" ", unicodedata.normalize("NFKC", answer[-_LONGEST:]))
        leading = _LEADING.match(said)
        for found in (
            _LABELLED.finditer(said),
            _LOUD.finditer(said),
            [leading] if leading else [],
            _MENTIONED.finditer(said),
        ):
            verdict = _agreed(found)
            if verdict is not None:
                return verdict
    raise UnusableAnswerError(f"no yes or no in an answer of {len(text)} characters")


def _agreed(found: Iterable[re.Match[str]]) -> bool | None:
    """What all matches say; None if there are none or they say different things."""
    kinds = {match.lastgroup in ("yes", "same") for match in found}
    return kinds.pop() if len(kinds) == 1 else None
