"""Sources of candidates: their protocol, and those that search the session's own topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from topicloom.background import defer_exit
from topicloom.domain.curation import PREVIEW_TOKENS, Candidate, collapse_whitespace
from topicloom.index.bm25 import LexicalIndex
from topicloom.index.ranking import Floats
from topicloom.index.session_index import SURE_COVER, Hits
from topicloom.state.language import CJK_RUN
from topicloom.state.plan import SearchIntent
from topicloom.state.recall import SourceKind, parse_message_number
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic


class CandidateSource(Protocol):
    """Finds candidates of one kind for one turn. Safe to use from a thread of its own.

    A source is a view of the session as it was when its turn began: what is said meanwhile does
    not change what it finds. It may raise whatever its store raises, which costs the turn no more
    than this source.
    """

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        """The best candidates, best first.

        The weights of the intent are not applied here. Scores go from 0 to 1 and mean the same in
        every source: 1 is the best of a source that found what was asked for, 0 is no better than
        anything else in it.
        """


def add_keywords(query: str, intent: SearchIntent) -> str:
    """The query with those of the planner's keywords that it does not say itself."""
    said = query.casefold()
    missing = [k for k in dict.fromkeys(intent.keywords) if k.casefold() not in said]
    return " ".join([query, *missing])


def scale_scores(scores: Floats, sure: float) -> Floats:
    """Scores [n] of one source as shares of its best, 0 to 1; the best has to be over 0.

    The scores of two sources have no scale in common, but the best of each is what it found, and
    what it found is as sure as the query's words and meaning are covered by it. So 1 stands for
    "found", and a source in which nothing fits stays low as a whole.
    """
    sure = min(1.0, max(0.0, sure))
    if float(np.ptp(scores)) < 1e-9:  # one alone, or none better than another
        return np.full(len(scores), sure)
    shares: Floats = np.clip(scores / float(scores.max()), 0.0, 1.0) * sure
    return shares


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that may be worth knowing, or a part of a long one."""

    id: str
    title: str
    text: str
    tags: tuple[str, ...] = ()

    @property
    def headed(self) -> str:
        """The text under its title, as it is searched."""
        return f"{self.title}: {self.text}" if self.title else self.text


@lru_cache(maxsize=16)
def build_word_index(passages: tuple[Passage, ...]) -> LexicalIndex:
    """A lexical index over passages. The last few are kept: turn by turn they are equal."""
    index = LexicalIndex()
    for passage in passages:
        index.add(passage.title, passage.text)
    return index


def list_candidates(kind: SourceKind, found: Iterable[tuple[Passage, float]]) -> list[Candidate]:
    """Passages as candidates of a kind, each with its score."""
    return [
        Candidate(
            id=p.id,
            kind=kind,
            title=p.title,
            preview=make_preview(p.text),
            text=p.text,
            score=float(score),
            tags=p.tags,
        )
        for p, score in found
    ]


def list_best(
    kind: SourceKind, passages: Sequence[Passage], scores: Floats, limit: int
) -> list[Candidate]:
    """The passages with the highest scores [n], over 0, as candidates, best first."""
    best = np.argsort(-scores, kind="stable")[:limit].tolist()
    return list_candidates(kind, ((passages[n], scores[n]) for n in best if scores[n] > 0))


def make_preview(text: str) -> str:
    """The beginning of a text in one line, as a selector is shown it."""
    whole = collapse_whitespace(text[: 8 * PREVIEW_TOKENS])
    preview = truncate(whole, PREVIEW_TOKENS)
    return preview if preview != whole or len(text) <= 8 * PREVIEW_TOKENS else f"{whole}…"


def truncate(text: str, tokens: int) -> str:
    """The beginning of a text, an ellipsis at its end if there is more.

    A token is a CJK character or four others.
    """
    left = 4 * tokens
    for place, character in enumerate(text):
        left -= 4 if CJK_RUN.match(character) else 1
        if left < 0:
            return text[:place].rstrip() + "…"
    return text


_OLDEST = 0.5
"""Worth of the oldest against the newest, all else equal."""


class NarrativeSource:
    """Searches summaries by recency-weighted words."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        told = [t for t in topics if t.summary or t.brief]
        self._newest = np.array([t.newest for t in told], dtype=float)
        self._passages = [
            Passage(
                f"narrative_{t.id}",
                t.name,
                t.summary or t.brief,
                ("archived",) if t.status == "archived" else (),
            )
            for t in told
        ]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        if not self._passages:
            return []
        index = build_word_index(tuple(self._passages))
        words, cover = index.scores(add_keywords(query, intent))
        age = 1 - self._newest / max(1.0, float(self._newest.max()))
        scores = scale_scores(words * (1 - (1 - _OLDEST) * age), cover / SURE_COVER)
        return list_best("narrative", self._passages, scores, limit)


_TOPICS = 8
_QUOTES = 3


@dataclass(slots=True)
class TopicSource:
    """Searches topics by the index's own relevance, and quotes the messages that it is due to."""

    topics: Sequence[Topic]
    """Topics that are not read in this turn."""
    hits: Callable[[str], Hits]
    """Asks the index."""
    messages: Callable[[Topic], Sequence[StoredMessage]]
    shown: Collection[str]
    """Short ids of messages that the prompt shows already."""

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        topics = {t.id: t for t in self.topics}
        if not topics:
            return []
        with defer_exit():
            hits = self.hits(add_keywords(query, intent))
        known = [t for t in hits.topics if t in topics]
        ranked = sorted(known, key=lambda t: -hits.topics[t])[: min(limit, _TOPICS)]
        quotes = {t: self._format_quotes(topics[t], hits.weights) for t in ranked}
        return list_candidates(
            "topic",
            (
                (Passage(f"topic_{t}", topics[t].name, text), hits.topics[t])
                for t, text in quotes.items()
                if text
            ),
        )

    def _format_quotes(self, topic: Topic, weights: Mapping[str, float]) -> str:
        """The best messages of a topic, in conversation order; empty if all are shown."""
        found = [m for m in self.messages(topic) if m.id in weights and m.id not in self.shown]
        best = sorted(found, key=lambda m: -weights[m.id])[:_QUOTES]
        best.sort(key=lambda m: parse_message_number(m.id))
        return "\n".join(f"[{m.id}] {m.line}" for m in best)
