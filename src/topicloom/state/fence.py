"""Text that is not ours, shown so that nothing in it passes for ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_OPEN, _CLOSE = r"[\[［【〔]", r"[\]］】〕]"
_TAGS = (
    *(
        "memory",
        "system_message",
        "context_layer",
        "user_facts",
        "knowledge_base",
        "relevant_memories",
    ),
    *("active_events", "guidance", "topic_result", "referenced_messages", "relevance_score"),
    *("topic_split", "topic_brief", "topic_review", "topic_routing", "matched_topics", "turn_plan"),
)
"""Tags of blocks and answers; not words that any markup has, such as `summary`."""
_WHOLE = (
    rf"{_OPEN}\s?[mtfMTF]\d+\s?{_CLOSE}",  # [m42] user: ...
    rf"{_OPEN}[^\]］】〕\n]{{1,50}}[:：]\s?[mM]\d+{_CLOSE}",  # [image: m42]
    rf"{_OPEN}calls\s",  # [calls look {...}]
    r"\d{4}-\d\d-\d\d:[ \t]*+$",  # 2026-03-02:
    r"\d{1,2} [A-Z][a-z]{2,8} \d{4}:[ \t]*+$",  # 2 March 2026:
    r"\d{4}年\d{1,2}月\d{1,2}日[：:][ \t]*+$",  # 2026年3月2日：
    r"(?:In short,|概要，)[^\n]{1,200}?[:：]",  # In short, Boiler: ...
)
"""Beginnings of lines that have a meaning in prompts."""
_BEGUN = (
    r"(?P<topic>[#＃])",  # # Boiler (t3)
    r"(?P<heading>={3})",  # === The conversation now ===
    r"(?P<day>--)(?![ \t]*+\n)",  # -- 2026-03-02 (Monday) --
)
"""The same, of lines that also need an end: `_FIND_END` has those."""
_BREAK = r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
_UNSEEN = (
    r"\u00ad\u034f\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0"
)
_HIDDEN = rf"\s{_UNSEEN}"
"""Characters that nobody sees; a model may pass over them, too."""
_NAMES = "|".join(f"[{_UNSEEN}]*+".join(tag) for tag in _TAGS)
_TAG = re.compile(rf"[<＜](?=[{_HIDDEN}/／]*+(?:{_NAMES})\b)", re.IGNORECASE)
_MARGIN = rf"[{_HIDDEN}>＞]"
_LINE = re.compile(
    rf"(?<!{_MARGIN})(?:(?!{_BREAK}){_MARGIN})*+{_BREAK}{_MARGIN}*+"
    rf"(?=(?P<whole>{'|'.join(_WHOLE)})|{'|'.join(_BEGUN)})",
    re.MULTILINE,
)
"""A run of breaks, hidden characters and marks of a quotation before what may be a line of ours; a
group names its kind.

It begins where the run begins, so no break is looked at twice."""
_TOPIC_END = re.compile(r"[(（]t\d++[)）]")


def fence(text: str) -> str:
    r"""The text, in which our own tags begin with `&lt;` and what looks like our lines with `\`.

    All else stays character for character. For prompts alone: what is stored is never changed.
    The time it takes is linear in the text, whatever the text is.
    """
    text = "\n" + _TAG.sub("&lt;", text)
    known = dict[str, tuple[int, int]]()  # by kind: how far a line goes, and where its end begins

    def mark(found: re.Match[str]) -> str:
        kind, start = str(found.lastgroup), found.end()
        if kind != "whole":
            stop, end = known.get(kind, (0, -1))
            if start >= stop:
                stop = text.find("\n", start)
                stop = len(text) if stop < 0 else stop
                end = _FIND_END[kind](text, start, stop)
                known[kind] = stop, end
            if end < start + len(found[kind]):
                return found[0]
        return found[0] + "\\"

    return _LINE.sub(mark, text)[1:]


def _find_topic_end(text: str, start: int, stop: int) -> int:
    return max((end.start() for end in _TOPIC_END.finditer(text, start, stop)), default=-1)


def _find_heading_end(text: str, start: int, stop: int) -> int:
    return text.rfind("===", start, stop)


def _find_day_end(text: str, start: int, stop: int) -> int:
    while stop > start and text[stop - 1] in " \t":
        stop -= 1
    return stop - 2 if text.endswith("--", start, stop) else -1


_FIND_END: Mapping[str, Callable[[str, int, int], int]] = {
    "topic": _find_topic_end,
    "heading": _find_heading_end,
    "day": _find_day_end,
}
r"""Where in a part of a text the last end of a line of each kind begins; -1 without one.

The part goes on to the next `\n`; there may be other breaks in it."""


def fence_line(text: str) -> str:
    """The same in one line, without runs of spaces."""
    return fence(" ".join(text.split()))
