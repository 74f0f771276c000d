"""Spotting cue phrases: "I told you before", "你忘了吗"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from topicloom.state.language import CJK_RUN

_GAP_LATIN = r"(?:\S+ ){0,3}"
_GAP_CJK = r".{0,8}?"


@dataclass(frozen=True, slots=True)
class Cues:
    """A list of phrases compiled for matching."""

    pattern: re.Pattern[str]
    """Finds any of them in a normalised text."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> Cues:
        """Compile phrases, one a line; blank lines and lines that begin with `#` are passed over.

        `...` stands for a gap: up to three words, or up to eight characters in a CJK phrase. Raises
        `ValueError` if there is no phrase at all.
        """
        phrases = [line.strip() for line in lines]
        parts = [_to_regex(p) for p in phrases if p and not p.startswith("#")]
        if not parts:
            raise ValueError("a cue list needs at least one phrase")
        return cls(re.compile("|".join(parts)))

    def found_in(self, text: str) -> bool:
        """True if any phrase occurs in the text, whatever its case and punctuation."""
        return self.pattern.search(normalize(text)) is not None

    def count_in(self, text: str) -> int:
        """The number of occurrences of the phrases in the text."""
        return sum(1 for _ in self.pattern.finditer(normalize(text)))

    def is_all_of(self, text: str) -> bool:
        """True if the text is nothing but one of the phrases."""
        return self.pattern.fullmatch(normalize(text).strip()) is not None


def normalize(text: str) -> str:
    """Lower case, apostrophes as `'`, other punctuation as spaces, runs of spaces as one."""
    plain = text.lower().replace("’", "'").replace("`", "'")
    return " ".join(re.sub(r"[^\w']+", " ", plain).split())


def _to_regex(phrase: str) -> str:
    cjk = CJK_RUN.search(phrase) is not None
    pieces = [normalize(piece) for piece in phrase.split("...")]
    if cjk:
        return _GAP_CJK.join(re.escape(p).replace(r"\ ", " ?") for p in pieces)
    joined = (" " + _GAP_LATIN).join(re.escape(p) for p in pieces)
    return rf"(?<!\S){joined}(?!\S)"
