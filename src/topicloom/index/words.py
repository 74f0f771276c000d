"""Words of a text as lexical search compares them, names of things in it, its keywords."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import add

from topicloom.prompts.loader import load_rows, load_words
from topicloom.prompts.wording import strip_own_replies
from topicloom.state.language import CJK_RUN

FUNCTION_WORDS = load_words("function_words")
"""English words that carry grammar only."""
_ASKING, _GRAMMAR = (row.split() for row in load_rows("cues/function_words_zh"))
_ASKED = re.compile("|".join(_ASKING))

_CJK = CJK_RUN.pattern.removesuffix("+")
_RUN = re.compile(rf"{CJK_RUN.pattern}|[^\W{_CJK[1:-1]}]+")
_SUFFIXES = (("ies", 4), ("ing", 5), ("edly", 6), ("ed", 4), ("ly", 5), ("es", 5), ("s", 4))
"""English suffixes, each with the length of the shortest word it is taken off."""
_LONGEST = 40
"""Letters of a word at most; longer runs are codes, which have no endings."""


def words_of(text: str) -> list[str]:
    """Words with their suffixes off; of CJK runs, characters and pairs of characters."""
    found: list[str] = []
    for run in _RUN.findall(text.lower()):
        if run.isascii():
            if run not in FUNCTION_WORDS:
                found.append(stem(run))
        elif len(run) > 1 and CJK_RUN.match(run):
            found += run
            found += map(add, run, run[1:])
        else:
            found.append(run)
    return found


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about: in Chinese, too, no words of grammar."""
    return frozenset(words_of(_ASKED.sub(" ", text))) - frozenset(_GRAMMAR)


def is_character(word: str) -> bool:
    """True for a single CJK character, which is hardly ever a word."""
    return len(word) == 1 and not word.isascii() and CJK_RUN.match(word) is not None


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


_ASIDE = re.compile(r"(?:(?<!\s)\s++)?[(（\[][^()（）\[\]]*+[)）\]]\s*+$")
"""What tells things of one name apart: "(film)", "（小说）"."""
_WORD = re.compile(r"\w+")
_SHORTEST, _SHORTEST_CJK = 3, 2
"""Letters of the shortest name that is looked for: shorter ones stand in other words by chance."""
_MOST_WORDS = 12
"""Words of the longest name that is looked for."""


class NameFinder:
    """Names by row, found in texts: in alphabets as whole words, in CJK wherever they stand.

    The name of a row without one is empty.
    """

    def __init__(self, names: Sequence[str]) -> None:
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


_EMPTY_WORDS = FUNCTION_WORDS | load_words("empty_words")
_PHRASE_WORD = re.compile(rf"(?:(?!{_CJK})[^\W\d_])(?:(?!{_CJK})[\w'’-])+")
_HAN_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_ASIDES = re.compile("|".join(load_rows("cues/asides")), re.I)
_LONGEST_PHRASE = 60
"""Characters past which a Latin phrase is data that was pasted, such as a key."""
_NEARLY = 0.8
"""Share of a phrase's occurrences from which it counts as part of a longer one."""
_HAN_BREAK, _HAN_EDGE = (
    frozenset("".join(load_rows(f"cues/{name}"))) for name in ("han_breaks", "han_edges")
)


def extract_keywords(texts: Sequence[str], most: int) -> list[str]:
    """The most frequent phrases, none a part of another."""
    chosen: list[str] = []
    for phrase, _ in _rank_phrases(texts)[: 4 * most]:
        if not any(phrase in c or c in phrase for c in chosen):
            chosen.append(phrase)
    return chosen[:most]


def _rank_phrases(texts: Sequence[str]) -> list[tuple[str, int]]:
    """Phrases with their counts, the most frequent first; ties have an order of their own."""
    counts = extract_phrases(texts).items()
    return sorted(counts, key=lambda found: (-found[1], -len(found[0]), found[0]))


def extract_phrases(texts: Sequence[str]) -> Counter[str]:
    """Candidate phrases: one to three content words, or two to four Han characters.

    What is nearly always part of one longer candidate is none by itself.
    """
    counts: Counter[str] = Counter()
    for text in (_ASIDES.sub("\n", strip_own_replies(t)) for t in texts):
        counts.update(set(_extract_latin(text)) | set(_extract_han(text)))
    parts = {
        part
        for phrase, count in counts.items()
        for part in (phrase[1:], phrase[:-1])
        if CJK_RUN.match(phrase) and counts[part] <= count / _NEARLY
    }
    return Counter({p: c for p, c in counts.items() if p not in parts})


def _extract_latin(text: str) -> list[str]:
    found: list[str] = []
    for clause in re.split(r"[.,;:!?()\n\"“”`|]+", text.lower()):
        run: list[str] = []
        for word in [*_PHRASE_WORD.findall(clause), ""]:
            if word and word not in _EMPTY_WORDS:
                run.append(word)
                continue
            found += [
                " ".join(run[i:j])
                for i in range(len(run))
                for j in range(i + 1, min(i + 4, len(run) + 1))
            ]
            run = []
    return [p for p in found if 3 < len(p) <= _LONGEST_PHRASE]


def _extract_han(text: str) -> list[str]:
    found: list[str] = []
    for run in _HAN_RUN.findall(text):
        pieces = "".join(" " if c in _HAN_BREAK else c for c in run).split()
        found += [p[i : i + n] for p in pieces for n in (2, 3, 4) for i in range(len(p) - n + 1)]
    return [p for p in found if p[0] not in _HAN_EDGE and p[-1] not in _HAN_EDGE]
