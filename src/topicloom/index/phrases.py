"""Titles and keywords drawn from the words of a topic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topicloom.index.embedder import Embedder, dot_products
from topicloom.index.words import FUNCTION_WORDS
from topicloom.prompts.loader import load_rows, load_words
from topicloom.prompts.wording import strip_own_replies
from topicloom.state.language import CJK_RUN

_EMPTY_WORDS = FUNCTION_WORDS | load_words("empty_words")
_WORD = re.compile(rf"(?:(?!{CJK_RUN.pattern})[^\W\d_])(?:(?!{CJK_RUN.pattern})[\w'’-])+")
_HAN_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_ASIDES = re.compile("|".join(load_rows("cues/asides")), re.I)
_CANDIDATES = 12
_LONGEST = 60
"""Characters past which a Latin phrase is data that was pasted, such as a key."""
_NEARLY = 0.8
"""Share of a phrase's occurrences from which it counts as part of a longer one."""
_HAN_BREAK, _HAN_EDGE = (
    frozenset("".join(load_rows(f"cues/{name}"))) for name in ("han_breaks", "han_edges")
)


def make_title(
    texts: Sequence[str], direction: NDArray[np.float32], embedder: Embedder, former: str = ""
) -> str:
    """A few words for a topic: the frequent phrase that is nearest to all of it.

    Texts that tell more may be given twice; the direction is the mean vector [d] of what was said.
    The former name stays while at least half as many texts hold it as hold the most frequent
    phrase, and if none does: whoever gave it did not take it from the texts.
    """
    found = _rank_phrases(texts)[:_CANDIDATES]
    found = [(phrase, count) for phrase, count in found if 2 * count >= found[0][1]]
    holding = sum(former.lower() in text.lower() for text in texts) if former else 0
    if former and (not holding or 2 * holding >= found[0][1]):
        return former
    if not found:
        return " ".join(texts[0].split())[:12] or "…"
    scores = dot_products(embedder.embed([phrase for phrase, _ in found]), direction)
    best = found[int(np.argmax(scores))][0]
    return best if CJK_RUN.search(best) else best[0].upper() + best[1:]


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
        for word in [*_WORD.findall(clause), ""]:
            if word and word not in _EMPTY_WORDS:
                run.append(word)
                continue
            found += [
                " ".join(run[i:j])
                for i in range(len(run))
                for j in range(i + 1, min(i + 4, len(run) + 1))
            ]
            run = []
    return [p for p in found if 3 < len(p) <= _LONGEST]


def _extract_han(text: str) -> list[str]:
    found: list[str] = []
    for run in _HAN_RUN.findall(text):
        pieces = "".join(" " if c in _HAN_BREAK else c for c in run).split()
        found += [p[i : i + n] for p in pieces for n in (2, 3, 4) for i in range(len(p) - n + 1)]
    return [p for p in found if p[0] not in _HAN_EDGE and p[-1] not in _HAN_EDGE]
