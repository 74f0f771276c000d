"""The languages of prompts, and which writing system a text is in, as far as that matters.

A module that loads nothing else of ours, and that a command's help can do with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Language = Literal["en", "zh"]
LanguageChoice = Literal["auto", Language]
"""A language of the prompts; `auto` follows the conversation."""


CJK_RANGES: tuple[tuple[int, int], ...] = (
    (0x1100, 0x11FF),  # Hangul jamo
    (0x3005, 0x3007),  # iteration mark, closing mark, zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3100, 0x312F),  # Bopomofo
    (0x3130, 0x318F),  # Hangul compatibility jamo
    (0x31A0, 0x31BF),  # Bopomofo extended
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA960, 0xA97F),  # Hangul jamo extended A
    (0xAC00, 0xD7FF),  # Hangul syllables, jamo extended B
    (0xF900, 0xFAFF),  # Han compatibility
    (0xFF66, 0xFFDC),  # halfwidth Katakana and Hangul
    (0x1AFF0, 0x1B16F),  # kana supplement and extensions
    (0x20000, 0x3FFFF),  # Han extensions B and later
)
"""First and last code point of each Han, Hiragana, Katakana, Bopomofo or Hangul block, sorted."""

CJK = f"[{''.join(f'{chr(low)}-{chr(high)}' for low, high in CJK_RANGES)}]"
"""A CJK character, as a pattern."""
CJK_RUN = re.compile(f"{CJK}+")
_HAN = re.compile("[\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")


def measure_cjk_share(text: str) -> float:
    """Share of the letters that are Han, Hiragana, Katakana, Bopomofo or Hangul, 0.0 to 1.0.

    Digits, punctuation, symbols and spaces do not count; a text without letters has 0.0.
    """
    letters = "".join(filter(str.isalpha, text))
    if not letters:
        return 0.0
    return sum(map(len, CJK_RUN.findall(letters))) / len(letters)


def measure_han_share(text: str) -> float:
    """Share of a text's CJK letters that are Han; 0.0 if it has none. In Japanese, about a half."""
    letters = "".join(CJK_RUN.findall(text))
    return sum(map(len, _HAN.findall(letters))) / len(letters) if letters else 0.0


def detect_language(texts: Sequence[str]) -> Language:
    """Chinese if a third of the letters are CJK, otherwise English."""
    return "zh" if measure_cjk_share(" ".join(texts)[:4_000]) > 1 / 3 else "en"


def choose_language(choice: LanguageChoice, texts: Sequence[str]) -> Language:
    """The language that is set, or else that of some texts."""
    return detect_language(texts) if choice == "auto" else choice
