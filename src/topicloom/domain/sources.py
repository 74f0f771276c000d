"""Sources of candidates: their protocol, and those that search the document's events and the
session's own topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from topicloom.background import defer_exit
from topicloom.domain.curation import PREVIEW_TOKENS, Candidate, collapse_whitespace
from topicloom.domain.document import DocumentEvent, get_anchor, get_label, is_active
from topicloom.index.bm25 import LexicalIndex
from topicloom.index.ranking import Floats
from topicloom.index.session_index import SURE_COVER, Hits
from topicloom.state.language import CJK_RUN
from topicloom.state.recall import SourceKind, parse_message_number
from topicloom.state.session import SearchIntent
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


def score_words(passages: Sequence[Passage], query: str, worth: Floats | float = 1.0) -> Floats:
    """Scores [n] of passages by the query's words, 0 to 1; `worth` [n] weighs one against another.

    None of no passages.
    """
    if not passages:
        return np.zeros(0)
    words, cover = build_word_index(tuple(passages)).scores(query)
    return scale_scores(words * worth, cover / SURE_COVER)


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
        age = 1 - self._newest / self._newest.max(initial=1.0)
        worth = 1 - (1 - _OLDEST) * age
        scores = score_words(self._passages, add_keywords(query, intent), worth)
        return list_best("narrative", self._passages, scores, limit)


Direction = Literal["before", "after"]


def find_related_events(
    events: Sequence[DocumentEvent], focus: str, depth: int
) -> dict[str, tuple[int, Direction]]:
    """Events before and after one, by anchor, with how many steps away they are.

    A walk keeps its direction: what else comes after a predecessor is neither. The focus is not in
    the result, links to no event lead nowhere, and rings are walked once.
    """
    earlier, later = _link_events(events)
    walks: dict[Direction, dict[str, set[str]]] = {"before": earlier, "after": later}
    found: dict[str, tuple[int, Direction]] = {}
    for direction, links in walks.items():
        reached = {focus}
        for step in range(1, depth + 1):
            reached = {n for i in reached for n in links.get(i, ())} - found.keys() - {focus}
            found |= dict.fromkeys(sorted(reached), (step, direction))
    return found


def _link_events(
    events: Sequence[DocumentEvent],
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    earlier: dict[str, set[str]] = {anchor: set() for e in events if (anchor := get_anchor(e))}
    later: dict[str, set[str]] = {anchor: set() for anchor in earlier}
    for event in events:
        own = get_anchor(event) or ""
        pairs = [(i, own) for i in _read_ids(event.get("after"))]
        pairs += [(own, i) for i in _read_ids(event.get("before"))]
        for first, second in pairs:
            if first in earlier and second in earlier:
                later[first].add(second)
                earlier[second].add(first)
    return earlier, later


def _read_ids(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [str(i) for i in listed if isinstance(i, str | int) and not isinstance(i, bool)]


_DEPTH = 2
_NEAR = (1.0, 0.6)


class EventSource:
    """Searches events: neighbours of the focus (an anchor), and others by their words.

    Active events are in the skeleton already, and are only walked through here.
    """

    def __init__(self, events: Sequence[DocumentEvent], focus: str | None) -> None:
        near = find_related_events(events, focus, _DEPTH) if focus else {}
        over = {get_anchor(e): e for e in events if not is_active(e)}
        passages = {
            anchor: Passage(
                f"event_{anchor}", get_label(e), _format_event(e), near.get(anchor, ())[1:]
            )
            for anchor, e in over.items()
            if anchor and anchor != focus
        }
        self._passages = list(passages.values())
        self._near = [_NEAR[near[i][0] - 1] if i in near else 0.0 for i in passages]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        words = score_words(self._passages, add_keywords(query, intent))
        scores = np.maximum(words, self._near)
        return list_best("event", self._passages, scores, limit)


def _format_event(event: DocumentEvent) -> str:
    return "\n".join(f"{k}: {_format_value(v)}" for k, v in event.items() if k != "_anchor")


def _format_value(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format_value(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_format_value, value))
    return str(value)


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
