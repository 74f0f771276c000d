"""One form of a text for comparing: what people write in several ways is the same in it."""

from __future__ import annotations

from unicodedata import normalize

import regex

_UNSAID = regex.compile(
    r"(?V1)[\p{Cf}[\p{Mn}&&[\p{Inherited}\p{Arabic}\p{Hebrew}]--[\u3099\u309A]]]+"
)
"""Soft hyphens, joiners and marks of direction; accents and vowel points, which many leave out.
The two marks that are kept make other syllables in Japanese."""


def fold(text: str) -> str:
    """A text as it is compared with others: `Café`, `cafe` and `ｃａｆé` are `cafe`.

    Compatibility forms (NFKC) and case are one. What is kept or quoted stays as it was written.
    """
    if text.isascii():
        return text.lower()
    return normalize("NFKC", _UNSAID.sub("", normalize("NFKD", text).casefold()))
