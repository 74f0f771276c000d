"""Text that is not ours, shown so that nothing in it passes for ours."""

from __future__ import annotations

import re

_TAGS = (
    *("memory", "context_layer", "user_facts", "knowledge_base", "relevant_memories"),
    *("active_events", "guidance", "topic_result", "referenced_messages", "relevance_score"),
    *("topic_split", "topic_brief", "topic_review", "topic_routing", "matched_topics", "turn_plan"),
)
"""Tags of blocks and answers; not words that any markup has, such as `summary`."""
_LINES = (
    r"\[[mtf]\d+\]",  # [m42] user: ...
    r"\[[^\]\n]{1,50}[:：]\s?m\d+\]",  # [image: m42]
    r"[#＃].*[(（]t\d+[)）]",  # # Boiler (t3)
    r"={3,}.*={3,}",  # === The conversation now ===
    r"--.*--[ \t]*$",  # -- 2026-03-02 (Monday) --
    r"\d{4}-\d\d-\d\d:[ \t]*$",  # 2026-03-02:
)
"""Beginnings of lines that have a meaning in prompts."""
_BREAK = r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
_HIDDEN = r"\s\u200b-\u200f\u2060\ufeff"
"""Characters that nobody sees; a model may pass over them, too."""
_TAG = re.compile(rf"[<＜](?=[{_HIDDEN}/／]*(?:{'|'.join(_TAGS)})\b)", re.IGNORECASE)
_LINE = re.compile(rf"({_BREAK}[{_HIDDEN}]*)(?={'|'.join(_LINES)})", re.MULTILINE)


def fence(text: str) -> str:
    r"""The text, in which our own tags begin with `&lt;` and what looks like our lines with `\`.

    All else stays character for character. For prompts alone: what is stored is never changed.
    """
    return _LINE.sub(r"\1\\", "\n" + _TAG.sub("&lt;", text))[1:]


def fence_line(text: str) -> str:
    """The same in one line, without runs of spaces."""
    return fence(" ".join(text.split()))
