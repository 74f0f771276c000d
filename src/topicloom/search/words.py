"""Words of a text as lexical search compares them, and names of things in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import add

import regex

from topicloom.prompts.loader import load_rows, load_words
from topicloom.state.folding import fold
from topicloom.state.language import CJK
from topicloom.state.safe_text import split_characters

FUNCTION_WORDS = load_words("function_words")
"""English words that carry grammar only."""
_ASKING, _GRAMMAR = (row.split() for row in load_rows("cues/function_words_zh"))
_ASKED = re.compile("|".join(_ASKING))

_WORD = regex.compile(r"\w+")
"""Letters with their marks, where `re` would take each mark for the end of a word."""
_NO_SPACES = f"{CJK[1:-1]}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Scripts without spaces between words: CJK, Thai, Lao, Burmese and Khmer."""
_SPACELESS = re.compile(f"[{_NO_SPACES}]")
_SCRIPTS = re.compile(f"[{_NO_SPACES}]+|[^{_NO_SPACES}]+")
_SUFFIXES = (("ies", 4), ("ing", 5), ("edly", 6), ("ed", 4), ("ly", 5), ("es", 5), ("s", 4))
"""English suffixes, each with the length of the shortest word it is taken off."""
_LONGEST = 40
"""Letters of a word at most; longer runs are codes, which have no endings."""


def words_of(text: str) -> list[str]:
    """Words, folded, with their suffixes off; where no spaces are, characters and pairs of them."""
    runs = _WORD.findall(folded := fold(text))
    if not folded.isascii():
        runs = [part for run in runs for part in _SCRIPTS.findall(run)]
    return [word for run in runs for word in _words_of_run(run)]


def _words_of_run(run: str) -> Iterable[str]:
    if run.isascii():
        return () if run in FUNCTION_WORDS else (stem(run),)
    if not _SPACELESS.match(run):
        return (run,)
    characters = split_characters(run)
    return chain(characters, map(add, characters, characters[1:]))


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about: in Chinese, too, no words of grammar."""
    return frozenset(words_of(_ASKED.sub(" ", text))) - frozenset(_GRAMMAR)


def is_character(word: str) -> bool:
    """True for a single character of a script without spaces, which is hardly ever a word."""
    return _SPACELESS.match(word) is not None and len(split_characters(word)) == 1


def stem(word: str) -> str:
    """Take the common English endings off, so that "baked" finds "baking"."""
    if not 3 < len(word) <= _LONGEST or not word.isascii():
        return word
    return _stem(word)


@lru_cache(65_536)
def _stem(word: str) -> str:
    base = _without_suffix(word)
    if len(base) > 3 and base.endswith("e"):
        base = base[:-1]
    return f"{base[:-1]}i" if len(base) > 3 and base.endswith("y") else base


def _without_suffix(word: str) -> str:
    for suffix, shortest in _SUFFIXES:
        if not word.endswith(suffix) or len(word) < shortest:
            continue
        if suffix == "s" and word[-2] in "su":
            continue
        if suffix == "ies":
            return f"{word[:-3]}i"
        base = word[: -len(suffix)]
        if len(base) < 3:
            return word
        doubled = len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz"
        return base[:-1] if doubled and suffix in ("ing", "ed", "edly") else base
    return word


_ASIDE = re.compile(r"(?:(?<!\s)\s++)?[(\[][^()\[\]]*+[)\]]\s*+$")
"""What tells things of one name apart: "(film)", "（小说）", once they are folded."""
_SHORTEST, _SHORTEST_RUN = 3, 2
"""Letters of the shortest name that is looked for: shorter ones stand in other words by chance."""
_MOST_WORDS = 12
"""Words of the longest name that is looked for."""


class NameFinder:
    """Names by row, found in texts: as whole words, but where no spaces are, wherever they stand.

    The name of a row without one is empty.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._words: dict[tuple[str, ...], list[int]] = {}
        self._runs: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            self._add(row, _ASIDE.sub("", fold(name)).strip())
        self._longest = max(map(len, self._words), default=0)

    def _add(self, row: int, name: str) -> None:
        if _SPACELESS.search(name):
            if len(name) >= _SHORTEST_RUN:
                self._runs.setdefault(name, []).append(row)
            return
        words = tuple(_WORD.findall(name))
        telling = [w for w in words if w not in FUNCTION_WORDS]
        if len(words) <= _MOST_WORDS and sum(map(len, telling)) >= _SHORTEST:
            self._words.setdefault(words, []).append(row)

    def within(self, text: str) -> set[int]:
        """Rows whose names stand in a text."""
        folded = fold(text)
        words = tuple(_WORD.findall(folded))
        phrases: Iterable[tuple[str, ...]] = (
            words[i : i + n]
            for n in range(1, min(self._longest, len(words)) + 1)
            for i in range(len(words) - n + 1)
        )
        found = {row for phrase in phrases for row in self._words.get(phrase, ())}
        return found.union(*(rows for run, rows in self._runs.items() if run in folded))
