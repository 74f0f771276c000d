"""Finding the names of things in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from topicloom.perception.words import FUNCTION_WORDS
from topicloom.state.script import CJK_RUN

_ASIDE = re.compile(r"\s*[(（\[][^()（）\[\]]*[)）\]]\s*$")
"""What tells things of one name apart: "(film)", "（小说）"."""
_WORD = re.compile(r"\w+")
_SHORTEST, _SHORTEST_CJK = 3, 2
"""Letters of the shortest name that is looked for: shorter ones stand in other words by chance."""
_MOST_WORDS = 12
"""Words of the longest name that is looked for."""


class Names:
    """Names by row, found in texts: in alphabets as whole words, in CJK wherever they stand."""

    def __init__(self, names: Sequence[str]) -> None:
        """Args:
        names: The name of each row; empty for a row without.
        """
        self._words: dict[tuple[str, ...], list[int]] = {}
        self._runs: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            self._add(row, _ASIDE.sub("", name).strip().casefold())
        self._longest = max(map(len, self._words), default=0)

    def _add(self, row: int, name: str) -> None:
        if CJK_RUN.search(name):
            if len(name) >= _SHORTEST_CJK:
                self._runs.setdefault(name, []).append(row)
            return
        words = tuple(_WORD.findall(name))
        telling = [w for w in words if w not in FUNCTION_WORDS]
        if len(words) <= _MOST_WORDS and sum(map(len, telling)) >= _SHORTEST:
            self._words.setdefault(words, []).append(row)

    def within(self, text: str) -> set[int]:
        """Rows whose names stand in a text."""
        folded = text.casefold()
        words = tuple(_WORD.findall(folded))
        phrases: Iterable[tuple[str, ...]] = (
            words[i : i + n]
            for n in range(1, min(self._longest, len(words)) + 1)
            for i in range(len(words) - n + 1)
        )
        found = {row for phrase in phrases for row in self._words.get(phrase, ())}
        return found.union(*(rows for run, rows in self._runs.items() if run in folded))
