"""Tokens of BERT's kind, which the encoders that ship were trained on.

The text is split as BERT does it without case (Devlin et al. 2019: blanks, punctuation, each Han
character by itself, no accents), and each word into the longest pieces that the vocabulary has.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

_LONGEST = 100
"""Characters of a word that is looked up; longer ones are unknown."""
_KEPT = 20_000
"""Words and characters whose split is remembered."""
_DROPPED = ("Cc", "Cf", "Co", "Cs")
_HAN = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class WordPiece:
    """Splits texts into the ids of a vocabulary."""

    def __init__(self, path: Path, most: int) -> None:
        """Read a vocabulary; `most` is the number of ids of a text, those of its frame included."""
        self._ids: Mapping[str, int] = json.loads(path.read_text("utf-8"))["model"]["vocab"]
        self._most = most - 2
        self._find = lru_cache(_KEPT)(self._split)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, framed by [CLS] and [SEP]; what is too long is cut."""
        ids: list[int] = []
        for word in "".join(map(_normalize, text)).split():
            ids += self._find(word)
            if len(ids) >= self._most:
                break
        return [self._ids["[CLS]"], *ids[: self._most], self._ids["[SEP]"]]

    def _split(self, word: str) -> list[int]:
        """The ids of the longest pieces of a word, from left to right."""
        ids: list[int] = []
        begin = 0 if len(word) <= _LONGEST else -1
        while 0 <= begin < len(word):
            mark = "##" if begin else ""
            ends = range(len(word), begin, -1)
            end = next((end for end in ends if mark + word[begin:end] in self._ids), -1)
            ids.append(self._ids.get(mark + word[begin:end], -1))
            begin = end
        return ids if begin >= 0 else [self._ids["[UNK]"]]


@lru_cache(_KEPT)
def _normalize(character: str) -> str:
    """A character as it is looked up: nothing, a blank, or itself, within blanks if it is apart."""
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in _DROPPED:
        return ""
    if character.isspace():
        return " "
    apart = any(first <= ord(character) <= last for first, last in _HAN)
    parts = (c for c in unicodedata.normalize("NFD", character) if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if apart or _is_punctuation(c) else c.lower() for c in parts)


def _is_punctuation(character: str) -> bool:
    ascii_mark = character.isascii() and character.isprintable() and not character.isalnum()
    return ascii_mark or unicodedata.category(character)[0] == "P"
