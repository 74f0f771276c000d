"""Texts of others made fit to be read or kept: short, of whole characters, without keys."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from typing import Any

import regex

from topicloom.errors import TopicLoomError
from topicloom.state.language import CJK

KEPT = 300
"""Characters that are kept of what somebody else says, where it is no part of the conversation."""
_ECHO = 3
"""Words in a row that an error hardly shares with a prompt unless it repeats it."""
_SECRETS = re.compile("auth|key|token|secret|cookie", re.I)
"""In the names of headers that hold a key."""
_KEY = re.compile(r"(?<![\w-])(?=[\w-]*?\d)(?=[\w-]*?[A-Za-z])[\w-]{20,}+")
"""Keys, whoever was sent them: letters and digits that are no word."""
_WORD = re.compile(rf"{CJK}|(?:(?!{CJK})\w)+")
_CHARACTER = regex.compile(r"\X")
_LONGEST_CHARACTER = 64
"""Code points."""
_HOLES = re.compile(r"…\W*…")
"""Parts that were taken out, with nothing said between them."""

TextHash = tuple[int, int]


def hash_text(text: str) -> TextHash:
    """What a cache knows a text by, within this process, without keeping it.

    A hash that let go of the interpreter would wait for it anew in each of the threads that read
    topics at once.
    """
    return len(text), hash(text)


def digest_text(text: str, digits: int = 16) -> str:
    """What a text is known by for good: hexadecimal digits of SHA-256, 64 at most."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:digits]


def clip(text: str, characters: int = KEPT) -> str:
    """A text of at most some whole characters, an ellipsis at its end if it was longer."""
    text = replace_surrogates(text.strip())
    return text if len(text) <= characters else cut(text, characters - 1).rstrip() + "…"


def cut(text: str, characters: int) -> str:
    """The beginning of a text, of so many code points or a few fewer: see `place_cut`."""
    return text[: place_cut(text, characters)]


def place_cut(text: str, place: int) -> int:
    """The last place, up to one given, at which a cut parts no character.

    A flag, a family or a letter with its vowel signs is one character of several. One that is
    longer than `_LONGEST_CHARACTER` is no character of any script and is parted.
    """
    if place >= len(text):
        return len(text)
    begin = max(0, place - _LONGEST_CHARACTER)
    *_, last = (found.start() for found in _CHARACTER.finditer(text, begin, place + 1))
    return last


def split_characters(text: str) -> list[str]:
    """The characters of a text as people count them (grapheme clusters of Unicode)."""
    return _CHARACTER.findall(text)


def describe_error(error: BaseException, sent: str = "") -> str:
    """A short sentence on an error: its type, a provider's code, and its message.

    Providers repeat what they were sent. So there is no key of the request's headers in it, and
    neither words in a row nor names and numbers of its prompt or of `sent`.
    """
    if isinstance(error, TopicLoomError):  # in our own words
        return clip(f"{type(error).__name__}: {error}")
    code = getattr(error, "code", None)
    text = (f"{clip(code, 60)}: {error}" if code and isinstance(code, str) else str(error))[:4_000]
    request: Any = vars(error).get("request")
    with suppress(AttributeError, RuntimeError, ValueError):  # none, or none that can be read
        named = (value for name, value in request.headers.items() if _SECRETS.search(name))
        for secret in (part for value in named for part in value.split() if len(part) > 5):
            text = text.replace(secret, "…")
        body = json.loads(request.content)  # names of the model and of tools may be told
        said = [body[key] for key in body.keys() - {"model", "tools"}]
        sent += json.dumps([value for value in said if isinstance(value, list | str)])
    text = KnownText(sent).remove_from(_unescape(_KEY.sub("…", text)))
    return clip(f"{type(error).__name__}: {text}").rstrip(": ")


class KnownText:
    """A text that others may repeat."""

    def __init__(self, text: str) -> None:
        words = _WORD.findall(_unescape(text))
        self._joined, self._words = " ".join(words), frozenset(words)

    def is_repeated_in(self, text: str) -> bool:
        """True if a text has anything of this one."""
        return self.remove_from(text) != text

    def remove_from(self, text: str) -> str:
        """A text with an ellipsis for what stands in this one too; as it is if nothing does.

        That is `_ECHO` words in a row or more, and single words with capitals or digits: names,
        codes. The first and the last may be parts of words: who repeats a text may cut it.
        """
        plain = _unescape(text)
        found = list(_WORD.finditer(plain))
        words = [match[0] for match in found]
        gone = {n for n, word in enumerate(words) if _is_telling(word) and word in self._joined}
        for first in range(len(words) - _ECHO + 1):
            row = words[first : first + _ECHO]
            if self._words.issuperset(row[1:-1]) and " ".join(row) in self._joined:
                gone.update(range(first, first + _ECHO))
        if not gone:
            return text
        ends = [0, *(match.end() for match in found)]
        kept = (
            plain[ends[n] : match.start()] + ("…" if n in gone else match[0])
            for n, match in enumerate(found)
        )
        return _HOLES.sub("…", "".join(kept) + plain[ends[-1] :])


def _is_telling(word: str) -> bool:
    return len(word) > 2 and any(c.isupper() or c.isdigit() for c in word)


def _unescape(text: str) -> str:
    """Text as it was before it was written as JSON, or as Python's `repr`, as often as it was."""
    text = re.sub(r"(?<!\\)\\++u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
    return replace_surrogates(re.sub(r"\\++[nrtbf]?", " ", text))


def replace_surrogates(text: str) -> str:
    """Text that UTF-8 can hold: halves of a character joined, and U+FFFD for one left alone."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_LONGEST_QUERY = 8_192
"""Characters that topics are searched with at most: as many as an encoder is given of a text."""


def shorten_query(text: str) -> str:
    """What a message is searched with: of a very long one its beginning and its end.

    A pasted document has what is asked about it before it or behind it, and no search gets better
    by a thousand words more.
    """
    half = _LONGEST_QUERY // 2
    return text if len(text) <= _LONGEST_QUERY else f"{text[:half]}\n{text[-half:]}"
