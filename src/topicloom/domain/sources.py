"""Sources of candidates: their protocol, and those that search the session's own topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from topicloom.background import defer_exit
from topicloom.domain.curation import PREVIEW_TOKENS, Candidate, collapse_whitespace
from topicloom.index.bm25 import LexicalIndex
from topicloom.index.ranking import Floats
from topicloom.index.session_index import Hits
from topicloom.state.plan import SearchIntent
from topicloom.state.recall import parse_message_number
from topicloom.state.script import CJK_RUN
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

SURE_COVER = 0.6
"""Share of the query's words from which something was found for sure."""


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

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Full texts by id, of candidates that the last search gave; others are passed over."""


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


@lru_cache(maxsize=16)
def build_word_index(texts: tuple[tuple[str, str], ...]) -> LexicalIndex:
    """A lexical index over labels and texts. The last few are kept: turn by turn they are equal."""
    index = LexicalIndex()
    for label, text in texts:
        index.add(label, text)
    return index


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
        self._topics = [t for t in topics if _get_summary(t)]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        if not self._topics:
            return []
        index = build_word_index(tuple((t.name, _get_summary(t)) for t in self._topics))
        words, cover = index.scores(add_keywords(query, intent))
        newest = np.array([t.newest for t in self._topics], dtype=float)
        age = 1 - newest / max(1.0, float(newest.max()))
        scores = scale_scores(words * (1 - (1 - _OLDEST) * age), cover / SURE_COVER)
        best = np.argsort(-scores, kind="stable")[:limit]
        return [
            Candidate(
                id=_make_id(topic),
                kind="narrative",
                title=topic.name,
                preview=make_preview(_get_summary(topic)),
                score=float(scores[row]),
                tags=("archived",) if topic.status == "archived" else (),
            )
            for row in best
            if scores[row] > 0 and (topic := self._topics[row])
        ]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        return {_make_id(t): _get_summary(t) for t in self._topics if _make_id(t) in ids}


def _make_id(topic: Topic) -> str:
    return f"narrative_{topic.id}"


def _get_summary(topic: Topic) -> str:
    return topic.summary or topic.brief


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
    texts: dict[str, str] = field(default_factory=dict)

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        topics = {t.id: t for t in self.topics}
        if not topics:
            return []
        with defer_exit():
            hits = self.hits(add_keywords(query, intent))
        known = [t for t in hits.topics if t in topics]
        ranked = sorted(known, key=lambda t: -hits.topics[t])[: min(limit, _TOPICS)]
        quotes = {t: self._format_quotes(topics[t], hits.weights) for t in ranked}
        self.texts = {f"topic_{t}": text for t, text in quotes.items() if text}
        return [
            Candidate(
                id=f"topic_{t}",
                kind="topic",
                title=topics[t].name,
                preview=make_preview(text),
                score=hits.topics[t],
            )
            for t, text in quotes.items()
            if text
        ]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        return {i: self.texts[i] for i in ids if i in self.texts}

    def _format_quotes(self, topic: Topic, weights: Mapping[str, float]) -> str:
        """The best messages of a topic, in conversation order; empty if all are shown."""
        found = [m for m in self.messages(topic) if m.id in weights and m.id not in self.shown]
        best = sorted(found, key=lambda m: -weights[m.id])[:_QUOTES]
        best.sort(key=lambda m: parse_message_number(m.id))
        return "\n".join(f"[{m.id}] {m.line}" for m in best)
