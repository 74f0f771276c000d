"""The phrases that a text is about: candidates by their words, and the most frequent of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import regex

from topicloom.prompts.loader import load_rows, load_words
from topicloom.prompts.wording import strip_own_replies
from topicloom.search.words import CJK, FUNCTION_WORDS
from topicloom.state.language import CJK_RUN

_EMPTY_WORDS = FUNCTION_WORDS | load_words("empty_words")
_PHRASE_WORD = regex.compile(rf"(?:(?!{CJK})[^\W\d_])(?:(?!{CJK})[\w'’-])+")
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
