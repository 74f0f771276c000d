"""Noun phrases of a text: the candidates for a topic's name.

A candidate is a run of nouns with the adjectives before them. Which words are nouns, and where
Chinese words end, is in a list (`lexicon.txt.gz`, made by `scripts/build_lexicon.py`).
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain

from topicloom.prompts.loader import load_rows, load_words
from topicloom.prompts.wording import strip_own_replies
from topicloom.search.words import FUNCTION_WORDS, stem
from topicloom.state.language import CJK_RUN, Language

_LONGEST_PHRASE = 4
"""Words of a phrase at most: more are half a sentence."""
LONGEST_WORD, LONGEST_HAN, _LONGEST_KNOWN = 30, 8, 5
"""Letters of a word, characters of a Chinese phrase, and of a word in the list of words."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    key: str
    """Lower case, without English endings."""
    kind: str
    """`n` noun, `a` adjective, `v` verb, `p` -ing form or participle, `o` preposition; of Chinese
    also `1` single character that is a noun, `u` characters that are no known word."""


Key = tuple[str, ...]
"""The words of a phrase in lower case, without English endings."""


LINKS = frozenset(("of", "to", "for", "in"))
"""Prepositions that a phrase may hold: "trip to Lagos"."""
_KEPT = frozenset(("first", "second", "new", "half"))
"""Empty words that make names all the same: "first aid"."""
_EMPTY = (FUNCTION_WORDS | load_words("empty_words") | load_words("name_fillers_en")) - _KEPT
_EMPTY_HAN = load_words("name_fillers_zh")
_NOUNS_HAN = load_words("name_nouns_zh")
_HAN_BREAK = frozenset("".join(load_rows("cues/han_breaks")))
_HAN_STOP = _HAN_BREAK | frozenset("".join(load_rows("cues/han_edges"))) | _EMPTY_HAN
_BEFORE_VERBS = load_words("before_verbs")
_BEFORE_OBJECTS = load_words("before_objects")

_ASIDES = re.compile("|".join(load_rows("cues/asides")), re.I)
DATA = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|www\.\S+|<[^<>\n]*>", re.S)
_ADDRESSEE = re.compile(r"^[^\S\n]*[\w|\[\]-]{2,20}: ", re.M)
_TITLE = re.compile(r"《([\w·：，！？ -]{2,14})》")
_CLAUSE = re.compile(r"[^\w\s'’-]+|_|\n|(?<!\w)['’-]+|['’-]+(?!\w)|(?<=\s)-+\s")
PIECE = re.compile(rf"{CJK_RUN.pattern}|(?:(?!{CJK_RUN.pattern})[\w'’-])+")
_HAN = re.compile(r"([\u3400-\u9fff]+)")
_UNSPACED = re.compile(r"(?![\u1100-\u11ff\uac00-\ud7ff])" + CJK_RUN.pattern)
"""Writing without spaces: all CJK but Hangul."""
HAN_INNER = re.compile(f"(?![{''.join(_HAN_BREAK)}])[\u3400-\u9fff]")


@cache
def _lexicon(language: Language) -> dict[str, str]:
    """Classes of words; in Chinese each with the power of two of its count, `n7`."""
    packed = (files("topicloom.topics") / "lexicon.txt.gz").read_bytes()
    found: dict[str, str] = {}
    for line in gzip.decompress(packed).decode().splitlines():
        kind, *words = line.split(" ")
        if kind.startswith(language):
            found.update(dict.fromkeys(words, kind.removeprefix(language)))
    return found


@lru_cache(2_048)
def phrase_words(text: str) -> frozenset[str]:
    """The words of a text that names hold."""
    return frozenset(word for key, *_ in _find_phrases(text[:2_000]) for word in key) - LINKS


@lru_cache(512)
def find_phrases(text: str) -> tuple[tuple[Key, str, float, bool], ...]:
    """Candidates of a text: key, spelling, grade, and True if it holds unknown characters.

    They are remembered for a while: an active topic is named anew at each split.
    """
    return tuple(_find_phrases(text))


def _find_phrases(text: str) -> Iterator[tuple[Key, str, float, bool]]:
    plain = _ADDRESSEE.sub("", _ASIDES.sub("\n", DATA.sub("\n", strip_own_replies(text))))
    for title in _TITLE.findall(plain):
        yield (title.lower(),), f"《{title}》", 1.0, False
    for clause in _CLAUSE.split(_TITLE.sub("\n", plain)):
        run: list[_Token] = []
        for token in chain(_tokens(clause), (None,)):
            if token is not None:
                run.append(token)
                continue
            yield from _phrases_of(run)
            run = []


def _phrases_of(run: Sequence[_Token]) -> Iterator[tuple[Key, str, float, bool]]:
    for stop in range(1, len(run) + 1):
        last = run[stop - 1].text
        cjk, ing = not last.isascii() and CJK_RUN.search(last) is not None, last.endswith("ing")
        for start in range(max(0, stop - _LONGEST_PHRASE), stop):
            tokens = run[start:stop]
            kinds = "".join([t.kind for t in tokens])
            fits = not cjk or 2 <= sum(len(t.text) for t in tokens) <= LONGEST_HAN
            grade = _grade_cjk(kinds) if cjk else _grade(kinds, ing)
            if fits and grade:
                yield tuple([t.key for t in tokens]), _spell(tokens), grade, "u" in kinds


@lru_cache(4_096)
def _grade(kinds: str, ing: bool) -> float:
    """The quality of a run of words as a name by their classes, 0 to 1.

    `ing` is True if the last word ends so.
    """
    if "o" in kinds:
        return 0.8 if re.fullmatch(r"[anp]*non?n", kinds) else 0.0
    if kinds.endswith("p"):
        return 0.8 if ing and re.fullmatch("n+p", kinds) else 0.0
    if not kinds.endswith("n"):
        return 0.0
    if kinds == "n":
        return 0.75 if ing else 1.0
    return {"a": 0.9, "p": 0.7}.get(kinds[0], 1.0)


@lru_cache(4_096)
def _grade_cjk(kinds: str) -> float:
    """As `_grade`, of a run that ends in Chinese."""
    if not re.fullmatch("[navu][navu]{0,2}|[navu]{1,2}1", kinds) or kinds[-1] == "a":
        return 0.0
    if kinds[-2:] in ("a1", "v1"):
        return 0.0
    last = {"v": 0.75 if len(kinds) > 1 else 0.5, "1": 0.8}.get(kinds[-1], 1.0)
    return last * {"v": 0.5, "a": 0.9}.get(kinds[0] if len(kinds) > 1 else "", 1.0)


def _spell(tokens: Sequence[_Token]) -> str:
    text = ""
    if all(t.text.isascii() for t in tokens):
        return " ".join([t.text for t in tokens])
    for token in tokens:
        close = _UNSPACED.match(text[-1:]) and _UNSPACED.match(token.text)
        text += token.text if close or not text else f" {token.text}"
    return text


def _tokens(clause: str) -> Iterator[_Token | None]:
    """The words of a clause; None for one that no name holds."""
    pieces = PIECE.findall(clause)
    for place, piece in enumerate(pieces):
        if not piece.isascii() and CJK_RUN.match(piece):
            yield from _cjk_tokens(piece)
        else:
            before = pieces[place - 1].lower() if place else ""
            after = pieces[place + 1].lower() if place + 1 < len(pieces) else ""
            yield _latin_token(piece, before, after)


def _latin_token(word: str, before: str, after: str) -> _Token | None:
    word = word.replace("’", "'")
    low = word.lower()
    owner = low.removesuffix("'s")
    if low in LINKS:
        return _Token(low, low, "o")
    if len(owner) < 2 or len(word) > LONGEST_WORD or word.count("-") > 2:
        return None
    if owner in _EMPTY or "'" in owner or not word[0].isalpha():
        return None
    if owner != low or low in _KEPT:
        return _Token(word, stem(owner), "a")
    kind = _classify(low)
    if kind == "a" and before in _BEFORE_OBJECTS and _ends_phrase(after):
        kind = "n"  # "the token"
    if kind == "b":  # "the sink", "kitchen sink"
        kind = "n" if before in _BEFORE_OBJECTS or _is_noun(before) else "v"
    as_verb = before in _BEFORE_VERBS and not low.endswith("s")
    with_object = after in _BEFORE_OBJECTS and before in ("", "to", "and", "or", "then")
    if kind in "xv" or (kind == "n" and (as_verb or with_object)):
        return None
    return _Token(word, stem(low), kind)


def _is_noun(before: str) -> bool:
    """True if a word is a singular noun, so that what follows it may be one as well."""
    return (
        before not in _EMPTY
        and not before.endswith("s")
        and _classify(before) == "n"
        and before.isalpha()
    )


def _ends_phrase(after: str) -> bool:
    """True if a word that comes after a noun phrase, or none, is no part of it."""
    return not after or after in _EMPTY or len(after) > LONGEST_WORD or _classify(after) in "xvb"


def _classify(word: str) -> str:
    """Class of an English word, by the list or by its ending."""
    known = _lexicon("en").get(word)
    if known:
        return known
    if "-" in word:
        first, _, last = word.partition("-")
        compound = _lexicon("en").get(last) or _lexicon("en").get(first)
        return "a" if compound in ("a", "p") else "n"
    if len(word) > 5 and word.endswith("ly"):
        return "x"
    return "p" if len(word) > 5 and word.endswith("ed") else "n"


def _cjk_tokens(run: str) -> Iterator[_Token | None]:
    for part in filter(None, _HAN.split(run)):
        if _HAN.match(part):
            yield from _join_unknown(_segment(part))
        else:  # kana or Hangul, which is not cut
            yield _Token(part, part, "n") if 1 < len(part) <= LONGEST_HAN else None


def trim_edges(text: str, phrase: str) -> str:
    """A Chinese text around a phrase, without the words at its edges that no name has there."""
    words = _segment(text)
    begin = text.index(phrase)
    while begin and words[0][0] in _EMPTY_HAN:
        begin -= len(words[0][0])
        if begin < 0:
            return text
        text, words = text.removeprefix(words[0][0]), words[1:]
    behind = len(text) - begin - len(phrase)
    while behind and (words[-1][0] in _EMPTY_HAN or words[-1][1][0] == "a"):
        behind -= len(words[-1][0])
        if behind < 0:
            return text
        text, words = text.removesuffix(words[-1][0]), words[:-1]
    return text


def _segment(run: str) -> list[tuple[str, str]]:
    """The likeliest words of a run of Han with their classes, by the counts of the words alone."""
    lexicon = _lexicon("zh")
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(run) + 1):
        options = []
        for start in range(max(0, end - _LONGEST_KNOWN), end):
            known = lexicon.get(run[start:end])
            if known or end - start == 1:
                power = int(known[1:]) if known else 0
                options.append((best[start][0] + power - _WHOLE, start))
        best.append(max(options))
    words: list[tuple[str, str]] = []
    end = len(run)
    while end:
        start = best[end][1]
        words.append((run[start:end], lexicon.get(run[start:end], "u0")))
        end = start
    return words[::-1]


_WHOLE = 25.5
"""Power of two of all counts in the dictionary that the list is from, 60 million, less a half."""


def _join_unknown(words: Sequence[tuple[str, str]]) -> Iterator[_Token | None]:
    """Tokens of Han words; two to four single characters in a row may be a name."""
    run: list[tuple[str, str]] = []
    for word, kind in (*words, ("", "x0")):
        if len(word) == 1 and word not in _HAN_STOP:
            run.append((word, kind))
            continue
        if 2 <= len(run) <= 4:
            joined = "".join(w for w, _ in run)
            yield _Token(joined, joined, "u")
        else:
            for single, single_kind in run:
                yield _Token(single, single, "1") if single_kind[0] == "n" else None
        run = []
        if word in _NOUNS_HAN:
            yield _Token(word, word, "n")
        elif len(word) < 2 or kind[0] == "x" or "的" in word or word in _EMPTY_HAN:
            yield None
        else:
            yield _Token(word, word, kind[0])
