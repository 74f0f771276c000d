"""What a source of candidates has to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np

from topicloom.index.bm25 import LexicalIndex
from topicloom.index.ranking import Floats
from topicloom.state.candidates import Candidate
from topicloom.state.curation import PREVIEW_TOKENS, one_line
from topicloom.state.plan import SearchIntent
from topicloom.state.script import CJK_RUN

SURE_COVER = 0.6
"""Share of the query's words from which something was found for sure."""


class Source(Protocol):
    """Finds candidates of one kind for one turn. Safe to use from a thread of its own.

    A source is a view of the session as it was when its turn began: what is said meanwhile does
    not change what it finds. It may raise whatever its store raises, which costs the turn no more
    than this source.
    """

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        """The best candidates, best first.

        Args:
            query: What to answer.
            intent: What the planner wants looked for; its weights are not applied here.
            limit: Candidates at most.

        Returns:
            Scores go from 0 to 1 and mean the same in every source: 1 is the best of a source that
            found what was asked for, 0 is no better than anything else in it.
        """
        ...

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Full texts by id, of candidates that the last search gave; others are passed over."""
        ...


def with_keywords(query: str, intent: SearchIntent) -> str:
    """The query with those of the planner's keywords that it does not say itself."""
    said = query.casefold()
    missing = [k for k in dict.fromkeys(intent.keywords) if k.casefold() not in said]
    return " ".join([query, *missing])


def scaled(scores: Floats, sure: float) -> Floats:
    """Scores [n] of one source as shares of its best, 0 to 1.

    The scores of two sources have no scale in common, but the best of each is what it found, and
    what it found is as sure as the query's words and meaning are covered by it. So 1 stands for
    "found", and a source in which nothing fits stays low as a whole.

    Args:
        scores: At least one, the best over 0; over 0 is better than most of the source.
        sure: How sure it is that something was found, 0 to 1.
    """
    sure = min(1.0, max(0.0, sure))
    if float(np.ptp(scores)) < 1e-9:
        # One alone, or none better than another.
        return np.full(len(scores), sure)
    shares: Floats = np.clip(scores / float(scores.max()), 0.0, 1.0) * sure
    return shares


@lru_cache(maxsize=16)
def word_index(texts: tuple[tuple[str, str], ...]) -> LexicalIndex:
    """A lexical index over labels and texts. The last few are kept: turn by turn they are equal."""
    index = LexicalIndex()
    for label, text in texts:
        index.add(label, text)
    return index


def preview_of(text: str) -> str:
    """The beginning of a text in one line, as a selector is shown it."""
    whole = one_line(text[: 8 * PREVIEW_TOKENS])
    preview = begun(whole, PREVIEW_TOKENS)
    return preview if preview != whole or len(text) <= 8 * PREVIEW_TOKENS else f"{whole}…"


def begun(text: str, tokens: int) -> str:
    """The beginning of a text, an ellipsis at its end if there is more.

    Args:
        text: Any text.
        tokens: Its length at most; a token is a CJK character or four others.
    """
    left = 4 * tokens
    for place, character in enumerate(text):
        left -= 4 if CJK_RUN.match(character) else 1
        if left < 0:
            return text[:place].rstrip() + "…"
    return text
