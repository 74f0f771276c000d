"""Texts of others made fit to be kept and shown.

Kept are short texts of whole characters, without keys and prompts. In a prompt nothing in them
passes for ours.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from topicloom.errors import TopicLoomError
from topicloom.state.language import CJK_RUN

KEPT = 300
"""Characters that are kept of what somebody else says, where it is no part of the conversation."""
_ECHO = 3
"""Words in a row that an error hardly shares with a prompt unless it repeats it."""
_SECRETS = re.compile("auth|key|token|secret|cookie", re.I)
"""In the names of headers that hold a key."""
_KEY = re.compile(r"(?<![\w-])(?=[\w-]*?\d)(?=[\w-]*?[A-Za-z])[\w-]{20,}+")
"""Keys, whoever was sent them: letters and digits that are no word."""
_CJK = CJK_RUN.pattern.removesuffix("+")
_WORD = re.compile(rf"{_CJK}|(?:(?!{_CJK})\w)+")
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
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"


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
_OPEN, _CLOSE = r"[\[［【〔]", r"[\]］】〕]"
_WHOLE = (
    rf"{_OPEN}\s?[mtfMTF]\d+\s?{_CLOSE}",  # [m42] user: ...
    rf"{_OPEN}[^\]］】〕\n]{{1,50}}[:：]\s?[mM]\d+{_CLOSE}",  # [image: m42]
    rf"{_OPEN}calls\s",  # [calls look {...}]
    r"\d{4}-\d\d-\d\d:[ \t]*+$",  # 2026-03-02:
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
