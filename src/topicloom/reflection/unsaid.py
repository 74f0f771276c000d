"""The names and numbers of a text that nobody said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from topicloom.state.stored_message import StoredMessage, parse_iso_seconds

_NAMED = re.compile(r"\d+(?:[.,:/-]\d+)*|(?<=[a-z0-9,;'’)] )[A-Z][A-Za-z'’-]+")
"""Numbers, and words that are capitalised within a sentence."""


def find_unsaid(text: str, messages: Sequence[StoredMessage]) -> list[str]:
    """The numbers of a text, and its names in Latin letters, that stand in none of the messages.

    A capitalised word counts as a name within a sentence only. What a message is dated by counts
    as said: the day, its weekday, the month's name and the year.
    """
    named = dict.fromkeys(match[0] for match in _NAMED.finditer(text))
    if not named:
        return []
    days = {m.day for m in messages if parse_iso_seconds(m.day) is not None}
    dates = map(date.fromisoformat, days)
    dated = [f"{d:%Y %m %d %B %b %A %a} {d.month} {d.day}" for d in dates]
    said = _join_numbers("\n".join([*(m.line for m in messages), *dated])).lower()
    return [name for name in named if not all(_stands_in(w, said) for w in _split_words(name))]


def _split_words(text: str) -> list[str]:
    """Runs of letters and of digits in lower case, without a number's commas and a name's `'s`."""
    return re.findall(r"\d+|[^\W\d_]+", re.sub(r"['’]s\b", "", _join_numbers(text)).lower())


def _join_numbers(text: str) -> str:
    """A text without the commas within its numbers."""
    return re.sub(r"(\d),(?=\d{3})", r"\1", text)


def _stands_in(word: str, text: str) -> bool:
    """True if a word stands in a text with no letter beside its letters, no digit beside digits.

    A topic's text is long and a summary's names are few: looking for these is faster than taking
    the text to pieces.
    """
    belongs = str.isdecimal if word.isdecimal() else str.isalpha
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (belongs(text[at - 1 : at]) or belongs(text[end : end + 1])):
            return True
        at = text.find(word, at + 1)
    return False
