"""Cutting a text at its sentences and lines: into sentences, and into passages of several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from topicloom.prompts.loader import load_rows
from topicloom.search.encoders import is_chinese
from topicloom.state.safe_text import place_cut

PASSAGE, _PASSAGE_ZH = 400, 250
"""Characters of a passage, and of one in Chinese, in which fewer say as much."""
_CUT = re.compile(
    r"""([.!?…]++[)\]"'”’»]*+(?=\s++(?![a-zß-öø-ÿ]))|[。！？]++[”』」）]*+|(?=\n))\s*+"""
)
"""Ends of sentences as Unicode has them (UAX 29): closing marks go with a sentence, and before a
small letter none ends. Ends of lines too."""
_LONGEST = 9
"""Characters of what ends no sentence."""
_NO_END = re.compile(rf"(?:\b(?:[A-Z]|{'|'.join(load_rows('cues/abbreviations'))})|^\W*\d+)\.$")
"""What ends no sentence: an abbreviation, an initial, and a number that counts."""


def sentences_of(text: str, size: int = PASSAGE) -> list[tuple[int, int]]:
    """Where the sentences and lines of a text begin and end; the longest are cut into parts.

    These have `size` characters. A number or a letter with a full stop goes with what it counts.
    """
    return [(begin, end) for begin, end in _cut(text, size) if text[begin:end].strip()]


def passages_of(text: str, size: int = 0) -> list[str]:
    """Cut a text at its sentences and lines into at least one passage of about `size` characters.

    A text up to twice as long stays whole. Without a size, that of the text's language.
    """
    size = size or (_PASSAGE_ZH if len(text) > _PASSAGE_ZH and is_chinese(text) else PASSAGE)
    if len(text) <= 2 * size:
        return [text]
    found = list[tuple[int, int]]()
    for begin, end in sentences_of(text, size):
        # One that is too long by itself stands alone.
        if found and end - found[-1][0] <= size:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return [text[slice(*span)].strip() for span in found] or [""]


def only_asks(text: str) -> bool:
    """True if each of a text's sentences is a question."""
    sentences = [text[begin:end].rstrip() for begin, end in sentences_of(text)]
    return bool(sentences) and all(sentence.endswith(("?", "？")) for sentence in sentences)


def _cut(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end, those that are blank as well."""
    begin = 0
    for gap in _CUT.finditer(text):
        end, after = gap.end(1), gap.end()
        if "\n" not in gap[0] and _NO_END.search(text[max(begin, end - _LONGEST) : end]):
            continue
        yield from _cut_long(text, begin, end, size)
        begin = after
    yield from _cut_long(text, begin, len(text), size)


def _cut_long(text: str, begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """One sentence, or parts of one that is longer than two passages."""
    if end - begin <= 2 * size:
        yield begin, end
    else:
        cuts = (place_cut(text, place) for place in range(begin + size, end, size))
        yield from pairwise([begin, *cuts, end])
