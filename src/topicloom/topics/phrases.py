"""Noun phrases of a text: the candidates for a topic's name, and for what it is about.

A candidate is a run of nouns with the adjectives before them. Which words are nouns, how rare they
are, and where Chinese words end, is in a list (`lexicon.txt.gz`, `scripts/build_lexicon.py`).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain, pairwise
from typing import NamedTuple

from topicloom.prompts.loader import load_rows
from topicloom.prompts.wording import strip_own_replies
from topicloom.search.words import stem
from topicloom.state.language import CJK_RUN, Language

_LONGEST_PHRASE = 4
"""Words of a phrase at most: more are half a sentence."""
LONGEST_WORD, LONGEST_HAN, _LONGEST_KNOWN = 30, 8, 5
"""Letters of a word, characters of a Chinese phrase, and of a word in the list of words."""
_RAREST = 19
"""Bits of a word that is not in the list."""
_ALONE = 0.6
"""Grade of a single English word, as two say more, and of Chinese that ends in a verb."""
_RARE_CHARACTER = 12
"""Bits from which characters in a row are a name that is not in the list."""
_ALL = 26.5
"""Bits by which a character is rarer as a word of its own than as a part of one."""


class Word(NamedTuple):
    """A word of a phrase."""

    text: str
    key: str
    """Lower case, without English endings."""
    kind: str
    """`n` noun, `a` adjective or participle, `g` -ing form, `o` preposition; of Chinese also `v`
    verb, `1` single character that is a noun, `u` characters that are no known word."""
    bits: int
    """Its rarity: one of 2 to the power of this words is it."""


class Phrase(NamedTuple):
    """A candidate."""

    text: str
    words: tuple[Word, ...]
    grade: float
    """Its quality as a name by the classes of its words, 0 to 1."""
    key: tuple[str, ...]
    """Its words in lower case, without English endings."""
    cjk: bool
    """True if it is Chinese, Japanese or Korean."""

    @classmethod
    def of(cls, text: str, words: tuple[Word, ...], grade: float) -> Phrase:
        """A candidate of some words."""
        cjk = not text.isascii() and CJK_RUN.search(text) is not None
        return cls(text, words, grade, tuple([word.key for word in words]), cjk)


_LINKS = frozenset(("of", "to", "for", "in"))
"""Prepositions that a phrase may hold before a name: "trip to Lagos", and not "need to search"."""
_ARTICLES = frozenset(("a", "an", "the", "my", "our", "your", "his", "her", "its", "their"))
"""Words behind which one that may be a verb is a noun: "the sink"."""

_ASIDES = re.compile("|".join(load_rows("cues/asides")), re.I)
DATA = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|www\.\S+|<[^<>\n]*>", re.S)
_ADDRESSEE = re.compile(r"^[^\S\n]*[\w|\[\]-]{2,20}: ", re.M)
_TITLE = re.compile(r"《([\w·：，！？ -]{2,14})》")
_CLAUSE = re.compile(r"[^\w\s'’-]+|_|\n|(?<!\w)['’-]+|['’-]+(?!\w)|(?<=\s)-+\s")
PIECE = re.compile(rf"{CJK_RUN.pattern}|(?:(?!{CJK_RUN.pattern})[\w'’-])+")
_HAN = re.compile(r"([\u3400-\u9fff]+)")
_UNSPACED = re.compile(r"(?![\u1100-\u11ff\uac00-\ud7ff])" + CJK_RUN.pattern)
"""Writing without spaces: all CJK but Hangul."""


@cache
def _lexicon(language: Language) -> dict[str, tuple[str, int]]:
    packed = (files("topicloom.topics") / "lexicon.txt.gz").read_bytes()
    found: dict[str, tuple[str, int]] = {}
    for line in gzip.decompress(packed).decode().splitlines():
        group, *words = line.split(" ")
        if group.startswith(language):
            found.update(dict.fromkeys(words, (group[2], int(group[3:]))))
    return found


@lru_cache(2_048)
def phrase_words(text: str) -> frozenset[str]:
    return frozenset(k for phrase in find_phrases(text[:2_000]) for k in phrase.key) - _LINKS


@lru_cache(512)
def find_phrases(text: str) -> tuple[Phrase, ...]:
    """Candidates of a text, in order.

    They are remembered for a while: an active topic is named anew at each split.
    """
    return tuple(_find_phrases(text))


def _find_phrases(text: str) -> Iterator[Phrase]:
    plain = _ADDRESSEE.sub("", _ASIDES.sub("\n", DATA.sub("\n", strip_own_replies(text))))
    for title in _TITLE.findall(plain):
        yield Phrase.of(f"《{title}》", (Word(title, title.lower(), "n", _RAREST),), 1.0)
    for clause in _CLAUSE.split(_TITLE.sub("\n", plain)):
        run: list[Word] = []
        for word in chain(_words(clause), (None,)):
            if word is not None:
                run.append(word)
                continue
            yield from _phrases_of(run)
            run = []


def _phrases_of(run: Sequence[Word]) -> Iterator[Phrase]:
    for stop in range(1, len(run) + 1):
        last, kind = run[stop - 1].text, run[stop - 1].kind
        if kind in "ao":
            continue  # no name ends in these
        cjk = not last.isascii() and CJK_RUN.search(last) is not None
        for start in range(max(0, stop - _LONGEST_PHRASE), stop):
            words = tuple(run[start:stop])
            kinds = "".join([t.kind for t in words])
            fits = not cjk or 2 <= sum(len(t.text) for t in words) <= LONGEST_HAN
            grade = _grade_cjk(kinds) if cjk else _grade(kinds)
            if fits and grade:
                yield Phrase.of(_spell(words), words, grade)


@lru_cache(4_096)
def _grade(kinds: str) -> float:
    """The quality of a run of words as a name by their classes, 0 to 1."""
    if kinds == "n":
        return _ALONE
    return float(re.fullmatch("a*n+g?(?:on+)?", kinds) is not None)


@lru_cache(4_096)
def _grade_cjk(kinds: str) -> float:
    """As `_grade`, of a run that ends in Chinese."""
    if not re.fullmatch("[nau]{0,2}[nvu]1?", kinds):
        return 0.0
    return _ALONE if kinds[-1] == "v" else 1.0


def _spell(words: Sequence[Word]) -> str:
    spaced = " ".join([word.text for word in words])
    if spaced.isascii():
        return spaced
    text = words[0].text
    for before, word in pairwise(words):
        close = _UNSPACED.match(before.text[-1:]) and _UNSPACED.match(word.text)
        text += word.text if close else f" {word.text}"
    return text


def _words(clause: str) -> Iterator[Word | None]:
    """The words of a clause; None for one that no name holds."""
    pieces = PIECE.findall(clause)
    for place, piece in enumerate(pieces):
        before = pieces[place - 1].lower() if place else ""
        counted = before[-1:].isdigit()  # "9 km", "5桶水"
        if not piece.isascii() and CJK_RUN.match(piece):
            yield from ([*_cjk_words(piece)][counted:])
        else:
            after = "".join(pieces[place + 1 : place + 2])
            yield None if counted else _latin_word(piece, before, after)


def _latin_word(word: str, before: str, after: str) -> Word | None:
    word = word.replace("’", "'")
    low = word.lower()
    owner = low.removesuffix("'s")
    if low in _LINKS and after[:1].isupper():
        return Word(low, low, "o", 0)
    if len(owner) < 2 or len(word) > LONGEST_WORD or word.count("-") > 2:
        return None
    if "'" in owner or not word[0].isalpha():
        return None
    kind, bits = _classify(owner)
    if owner != low:
        kind = "a"
    elif kind == "b":  # "the sink", "kitchen sink"
        noun = before and not before.endswith("s") and _classify(before)[0] == "n"
        kind = "n" if noun or before in _ARTICLES else "v"
    return None if kind in "xv" else Word(word, stem(owner), kind, bits)


def _classify(word: str) -> tuple[str, int]:
    """Class and bits of an English word, by the list or by its ending."""
    lexicon = _lexicon("en")
    kind, bits = lexicon.get(word) or ("", _RAREST)
    if "-" in word:
        first, _, last = word.partition("-")
        kind = lexicon.get(last, lexicon.get(first, "n"))[0]
        kind = "a" if kind in "ap" else "n"
    elif not kind:
        endings = (("ly", "x"), ("ed", "a"))
        kind = next((k for end, k in endings if len(word) > 5 and word.endswith(end)), "n")
    elif kind == "p":
        kind = "g" if word.endswith("ing") else "a"
    return kind, bits


def _cjk_words(run: str) -> Iterator[Word | None]:
    for part in filter(None, _HAN.split(run)):
        if _HAN.match(part):
            yield from _join_unknown(_segment(part))
        else:  # kana or Hangul, which is not cut
            yield Word(part, part, "n", _RAREST) if 1 < len(part) <= LONGEST_HAN else None


def _segment(run: str) -> list[Word]:
    """The likeliest words of a run of Han, by the counts of the words alone."""
    lexicon = _lexicon("zh")
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(run) + 1):
        options = []
        for start in range(max(0, end - _LONGEST_KNOWN), end):
            known = lexicon.get(run[start:end])
            if known or end - start == 1:
                options.append((best[start][0] - (known[1] if known else _ALL), start))
        best.append(max(options))
    words: list[Word] = []
    end = len(run)
    while end:
        start = best[end][1]
        text = run[start:end]
        words.append(Word(text, text, *lexicon.get(text, ("u", _RAREST))))
        end = start
    return words[::-1]


def _join_unknown(words: Sequence[Word]) -> Iterator[Word | None]:
    """Words of Han; two to four single characters in a row are a name if they are rare enough."""
    run: list[Word] = []
    for word in (*words, None):
        if word and len(word.text) == 1 and word.kind != "x":
            run.append(word)
            continue
        if 2 <= len(run) <= 4 and min(w.bits for w in run) >= _RARE_CHARACTER:
            joined = "".join(w.text for w in run)
            yield Word(joined, joined, "u", _RAREST)
        else:
            for single in run:
                yield single._replace(kind="1") if single.kind == "n" else None
        run = []
        if word:
            yield None if len(word.text) < 2 or word.kind == "x" or "的" in word.text else word
