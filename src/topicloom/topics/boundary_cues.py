"""Cues of a message beside its meaning: speaker, question, length, words that lean backwards.

Greetings, thanks and goodbyes are left out on purpose. In dialogues that were stitched together
they give every boundary away; in one long conversation they hardly occur.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from topicloom.prompts.loader import load_patterns
from topicloom.search.words import words_of
from topicloom.state.language import measure_cjk_share
from topicloom.state.safe_text import TextHash, hash_text
from topicloom.topics.similarity import Floats, lagged


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message of a conversation."""

    role: str | None
    """"user", "assistant", "system" or the like; None where nobody plays a role."""
    speaker: str | None
    """Name of the speaker, where it is known."""
    text: str
    """What was said."""


CUE_NAMES = ("asks", "ends_asking", "length", "leans", "points", "words", "digits")
"""Columns of `cues_of`, in order."""

MAX_CHARACTERS = 4_000
"""Characters read of one message; a pasted page says no more in full."""
CJK_LETTERS = 3.0
"""Letters of an alphabet that say as much as one CJK character."""
MOSTLY_CJK = 0.4
"""Share of CJK letters from which a message counts as CJK text, as in `search.encoders`."""

_REMEMBERED = 4_096
"""Messages whose cues are remembered, by hashes: nothing is kept of what was said."""

_PATTERNS, _ = load_patterns("cues/boundary")
_ASKS, _LEANS, _POINTS = (
    re.compile(_PATTERNS[name], re.IGNORECASE) for name in ("asks", "leans", "points")
)
_DIGIT = re.compile(r"\d")


@cached(LRUCache[TextHash, tuple[float, ...]](_REMEMBERED), key=hash_text, lock=Lock())
def cues_of(text: str) -> tuple[float, ...]:
    """Cues of one message: `CUE_NAMES`.

    `asks`, `ends_asking` and `leans` are 0 or 1; `length` and `words` are logarithms of letters
    (a CJK character as `CJK_LETTERS`) and of distinct words; `points` and `digits` are shares of
    the most that is counted, 3 and 6.
    """
    text = text[:MAX_CHARACTERS]
    letters = len(text) * (CJK_LETTERS if is_cjk(text) else 1.0)
    return (
        float(_ASKS.search(text) is not None),
        float(text.rstrip()[-1:] in ("?", "？")),
        float(np.log1p(letters)),
        float(_LEANS.match(text) is not None),
        min(len(_POINTS.findall(text)), 3) / 3,
        float(np.log1p(len(hash_text_words(text)))),
        min(len(_DIGIT.findall(text)), 6) / 6,
    )


@cached(LRUCache[TextHash, frozenset[int]](_REMEMBERED), key=hash_text, lock=Lock())
def hash_text_words(text: str) -> frozenset[int]:
    """Hashes of the words of a message, each once, without grammar words and endings."""
    return frozenset(map(hash, words_of(text[:MAX_CHARACTERS])))


@cached(LRUCache[TextHash, bool](_REMEMBERED), key=hash_text, lock=Lock())
def is_cjk(text: str) -> bool:
    """True if a message is mostly Chinese, Japanese or Korean."""
    return measure_cjk_share(text[:MAX_CHARACTERS]) > MOSTLY_CJK


def novelty(texts: Sequence[str], near: int, first: int = 0) -> NDArray[np.float64]:
    """Words of messages from `first` on that are new, and that are heard again [n - first, 2].

    Share of a message's words in none of the `near` messages before it, and share of them in the
    last one; NaN where there are no words or nothing came before.
    """
    found = np.full((len(texts) - first, 2), np.nan)
    for place in range(max(first, 1), len(texts)):
        words = hash_text_words(texts[place])
        if words:
            before = [hash_text_words(text) for text in texts[max(0, place - near) : place]]
            new = len(words.difference(*before)) / len(words)
            found[place - first] = new, len(words & before[-1]) / len(words)
    return found


ASKING_ROLE = "user"
_UNKNOWN = -1.0


def same_side(said: Sequence[Utterance], reach: int, first: int = 0) -> NDArray[np.bool_]:
    """True for messages before each that are of the same side [n - first, reach], from `first` on.

    Column `k - 1` is for lag k. A side is a speaker or, where no name is known, a role. Where
    neither is known two speakers are taken to alternate, counted back from the message, so that no
    earlier start is needed.
    """
    codes = _codes(said)
    now, before = codes[first:, None], lagged(codes, reach, first)
    alternate = np.arange(1, reach + 1) % 2 == 0
    known = (now != _UNKNOWN) & (before != _UNKNOWN)
    return np.asarray(np.where(known, before == now, alternate), dtype=np.bool_)


def asking_side(said: Sequence[Utterance], reach: int, first: int = 0) -> Floats:
    """1 [n - first] for the side that brings topics up, -1 for the other, 0 where it is not known.

    A role tells: the user asks, everyone else answers. Without roles it is the side that spoke
    first, as far as the start of the conversation is fewer than `reach` messages back.
    """
    return np.array([_asks(said, place, reach) for place in range(first, len(said))])


def _asks(said: Sequence[Utterance], place: int, reach: int) -> float:
    message = said[place]
    if message.role is not None:
        return 1.0 if message.role == ASKING_ROLE else -1.0
    if place >= reach:
        return 0.0
    side = _side(message)
    opened = place % 2 == 0 if side is None else side == _side(said[0])
    return 1.0 if opened else -1.0


def _side(message: Utterance) -> str | None:
    return message.role if message.speaker is None else message.speaker


def _codes(said: Sequence[Utterance]) -> Floats:
    numbers: dict[str | None, float] = {None: _UNKNOWN}
    found = [numbers.setdefault(_side(s), float(len(numbers))) for s in said]
    return np.array(found, dtype=np.float64)
