"""Showing a text in part where the whole does not fit."""

from __future__ import annotations

from collections.abc import Callable

from topicloom.prompts.wording import wording
from topicloom.state.session import Language


def excerpt(
    text: str, limit: int, count: Callable[[str], int], message_id: str, language: Language
) -> str:
    """Head and tail of a text, about two to one, and between them a mark of what is missing.

    Args:
        text: Any text.
        limit: Tokens that the result may have, about.
        count: Counts tokens.
        message_id: Short id of the message, for the mark.
        language: Language of the mark.

    Returns:
        The text itself if it is within the limit.
    """
    tokens = count(text)
    if tokens <= limit or len(text) < 64:
        return text
    keep = max(32, int(len(text) * limit / tokens))
    while True:
        shown = _cut(text, keep, message_id, language)
        if keep <= 32 or count(shown) <= limit:
            return shown
        keep = keep * 4 // 5


def _cut(text: str, keep: int, message_id: str, language: Language) -> str:
    head, tail = text[: keep * 2 // 3], text[len(text) - keep // 3 :]
    count = len(text) - len(head) - len(tail)
    mark = f"\n{wording(language).left_out.format(count=count, id=message_id)}\n"
    return f"{head}{mark}{tail}"
