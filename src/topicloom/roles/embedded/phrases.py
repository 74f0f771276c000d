"""Titles and keywords drawn from the words of a topic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from topicloom.perception.embedder import Embedder, Vectors
from topicloom.perception.words import FUNCTION_WORDS
from topicloom.state.blocks import LogicalBlock
from topicloom.state.script import CJK_RUN

_EMPTY_WORDS = FUNCTION_WORDS | frozenset(
    """
    also back because can't didn't doesn't don't even few get gets getting go goes going gonna good
    got great here's hey hi how's i'd i'll i'm i've isn't it's just know let let's like lot make
    makes maybe much need now off oh ok okay one out please really right say see something still
    such sure take thank thanks that's there's they're thing things think though through today until
    us use used want wasn't way we'll we're we've well what's while why will with without won't wow
    yeah yes yet you'd you'll you're you've new first last next around every never always cool nice
    """.split()
)
_WORD = re.compile(rf"(?:(?!{CJK_RUN.pattern})[^\W\d_])(?:(?!{CJK_RUN.pattern})[\w'’-])+")
_HAN_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_CANDIDATES = 12
_HAN_STOP = set(
    "的了是我你他她它们这那就都也和在有不很吗呢吧啊要会能可以一个"
    "什么怎么没说去来到给把被让还再又上下里想做看"
)


def title_of(blocks: Sequence[LogicalBlock], vectors: Vectors, embedder: Embedder) -> str:
    """A few words for the blocks: the frequent phrase that is nearest to all of them.

    Args:
        blocks: Of one topic; not empty.
        vectors: Their unit vectors [blocks, d].
        embedder: Compares phrases with them.
    """
    texts = [b.records[0].text[:600] for b in blocks]
    found = [
        p for p, _ in phrases([*texts, *(b.text[:1_200] for b in blocks)]).most_common(_CANDIDATES)
    ]
    if not found:
        return " ".join(texts[0].split())[:12] or "…"
    scores = embedder.embed(found) @ vectors.mean(axis=0)
    best = found[int(np.argmax(scores))]
    return best if CJK_RUN.search(best) else best[0].upper() + best[1:]


def keywords(texts: Sequence[str], most: int) -> list[str]:
    """The most frequent phrases, none a part of another."""
    chosen: list[str] = []
    for phrase, _ in phrases(texts).most_common(4 * most):
        if not any(phrase in c or c in phrase for c in chosen):
            chosen.append(phrase)
    return chosen[:most]


def phrases(texts: Sequence[str]) -> Counter[str]:
    """Candidate phrases: one to three content words, or two to four Han characters."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(_latin(text)) | set(_han(text)))
    return counts


def _latin(text: str) -> list[str]:
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
    return [p for p in found if len(p) > 3]


def _han(text: str) -> list[str]:
    found: list[str] = []
    for run in _HAN_RUN.findall(text):
        pieces = "".join(" " if c in _HAN_STOP else c for c in run).split()
        found += [p[i : i + n] for p in pieces for n in (2, 3, 4) for i in range(len(p) - n + 1)]
    return found
