"""Text that is not ours, shown so that nothing in it passes for ours."""

from __future__ import annotations

import re

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
_LINES = (
    rf"{_OPEN}\s?[mtfMTF]\d+\s?{_CLOSE}",  # [m42] user: ...
    rf"{_OPEN}[^\]］】〕\n]{{1,50}}[:：]\s?[mM]\d+{_CLOSE}",  # [image: m42]
    rf"{_OPEN}calls\s",  # [calls look {...}]
    r"\d{4}-\d\d-\d\d:[ \t]*+$",  # 2026-03-02:
    r"\d{1,2} [A-Z][a-z]{2,8} \d{4}:[ \t]*+$",  # 2 March 2026:
    r"\d{4}年\d{1,2}月\d{1,2}日[：:][ \t]*+$",  # 2026年3月2日：
    r"(?:In short,|概要，)[^\n]{1,200}?[:：]",  # In short, Boiler: ...
    r"[#＃][^\n]{0,300}?[(（]t\d+[)）]",  # # Boiler (t3)
    r"={3}[^\n]{0,300}?={3}",  # === The conversation now ===
    r"--[^\n]{0,300}?--[ \t]*+$",  # -- 2026-03-02 (Monday) --
)
"""Lines that have a meaning in prompts, or how they begin: longer than this none of ours is."""
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
    rf"(?={'|'.join(_LINES)})",
    re.MULTILINE,
)
"""A run of breaks, hidden characters and marks of a quotation before what may be a line of ours.

It begins where the run begins, so no break is looked at twice."""


def fence(text: str) -> str:
    r"""The text, in which our own tags begin with `&lt;` and what looks like our lines with `\`.

    All else stays character for character. For prompts alone: what is stored is never changed.
    The time it takes is linear in the text, whatever the text is.
    """
    return _LINE.sub(r"\g<0>\\", "\n" + _TAG.sub("&lt;", text))[1:]


def fence_line(text: str) -> str:
    """The same in one line, without runs of spaces."""
    return fence(" ".join(text.split()))
