"""Runs of characters of one kind in a text, as estimates of tokens price them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

_LATIN = "A-Za-z\u00c0-\u024f"
_CJK = "\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK += "\U00020000-\U0003ffff"
_PUNCTUATION = "!-/:-@\\[-`{-~"
_RUN = re.compile(
    f"[{_LATIN}]+(?:'[a-z]{{1,2}}(?![{_LATIN}]))?"  # "don't" and "we'll" are one word
    f"|[{_CJK}]+|[{_PUNCTUATION}]+|[0-9]+|[\r\n]+|[ \t]{{2,}}|\t"
    f"|[^{_LATIN}{_CJK}{_PUNCTUATION}0-9\r\n\t ]+"
)
"""One run; a single space is in none, because tokenizers join it to the word that follows."""
CJK_START = re.compile(f"[{_CJK}]")
"""The first character of a run of CJK."""
_LONG = 2_000
"""Characters from which columns take less time than strings."""

_KINDS = (
    ("a", _LATIN),
    ("中", _CJK),
    ("!", _PUNCTUATION),
    ("0", "0-9"),
    ("\n", "\r\n"),
    ("\t", " \t"),
    ("…", ""),  # all others
)
"""What characters of each kind are, and one of them."""
_WORD, _, _MARKS, _, _, _BLANKS, _OTHERS, _NONE = range(len(_KINDS) + 1)
_TABLE = 0x40000
"""Code points that the table of kinds has; those behind it are others."""
_SHORT_END = 2
"""Letters of the end of a word behind an apostrophe, at most."""


def count_runs(text: str) -> Iterator[tuple[str, int, int]]:
    """The runs of a text: the first character, the length, and how many there are of such a run.

    Of a long text, the first character is one of its kind: each run as a string of its own would
    take four times as long.
    """
    if len(text) >= _LONG:
        yield from _count_in_columns(text)
        return
    for run, times in Counter(_RUN.findall(text)).items():
        yield run[0], len(run), times


def _count_in_columns(text: str) -> Iterator[tuple[str, int, int]]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    by_character = _make_table()[np.minimum(codes, _TABLE)]
    begins = np.flatnonzero(np.diff(by_character, prepend=_NONE))
    lengths, kinds = np.diff(begins, append=len(codes)), by_character[begins]
    kinds[(kinds == _BLANKS) & (lengths == 1) & (codes[begins] == ord(" "))] = _NONE
    _join_apostrophes(codes, begins, lengths, kinds)
    for kind, (first, _) in enumerate(_KINDS):
        counts = np.bincount(lengths[kinds == kind])
        for length in np.flatnonzero(counts).tolist():
            yield first, length, int(counts[length])


@cache
def _make_table() -> NDArray[np.uint8]:
    """The kind of each code point, and of all that are behind the table."""
    every = "".join(map(chr, range(_TABLE)))
    table = np.full(_TABLE + 1, _OTHERS, dtype=np.uint8)
    for kind, (_, characters) in enumerate(_KINDS[:_OTHERS]):
        for found in re.finditer(f"[{characters}]+", every):
            table[found.start() : found.end()] = kind
    return table


def _join_apostrophes(
    codes: NDArray[np.uint32],
    begins: NDArray[np.intp],
    lengths: NDArray[np.intp],
    kinds: NDArray[np.uint8],
) -> None:
    """Join an apostrophe and the short end behind it to the word before, in the runs' columns."""
    before, between, behind = slice(None, -2), slice(1, -1), slice(2, None)
    apostrophe = (lengths[between] == 1) & (codes[begins[between]] == ord("'"))
    short = (kinds[behind] == _WORD) & (lengths[behind] <= _SHORT_END)
    words = np.flatnonzero((kinds[before] == _WORD) & apostrophe & short)
    first = begins[words + 2]
    ends = codes[np.stack([first, first + lengths[words + 2] - 1])]
    words = words[((ends >= ord("a")) & (ends <= ord("z"))).all(axis=0)]
    # An end that is taken is no word before another: in a row of them, it is every second one.
    place = np.arange(len(words))
    row = np.maximum.accumulate(np.where(np.diff(words, prepend=-3) == 2, 0, place))
    words = words[(place - row) % 2 == 0]
    lengths[words] += 1 + lengths[words + 2]
    kinds[words + 1] = kinds[words + 2] = _NONE
