"""Sources of candidates: of topics, of events, and those of applications."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

import numpy as np

from topicloom.domain.curation import Candidate
from topicloom.domain.document import DocumentEvent, get_anchor, get_label, is_active
from topicloom.domain.plan import SearchIntent
from topicloom.domain.recall_source import RecallQuery, RecallSource, check_hit
from topicloom.domain.yaml_text import format_yaml
from topicloom.search.bm25 import LexicalIndex
from topicloom.search.message_search import SURE_COVER
from topicloom.search.ranking import Floats
from topicloom.state.folding import fold
from topicloom.state.safe_text import cut
from topicloom.state.session import Session
from topicloom.state.topics import Topic

Direction = Literal["before", "after"]


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
    said = fold(query)
    missing = [k for k in dict.fromkeys(intent.keywords) if fold(k) not in said]
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


NOT_IN_ID = re.compile(r"[^\w.-]+")
"""Characters that an id of a candidate cannot have: a model has to be able to repeat it."""


@lru_cache(maxsize=16)
def build_word_index(candidates: tuple[Candidate, ...]) -> LexicalIndex:
    """A lexical index over candidates. The last few are kept: turn by turn they are equal."""
    index = LexicalIndex()
    for candidate in candidates:
        index.add(candidate.title, candidate.text)
    return index


def score_words(
    candidates: Sequence[Candidate], query: str, weights: Floats | float = 1.0
) -> Floats:
    """Scores [n] by the query's words, 0 to 1; `weights` [n] weigh one against another."""
    if not candidates:
        return np.zeros(0)
    words, cover = build_word_index(tuple(candidates)).scores(query)
    return scale_scores(words * weights, cover / SURE_COVER)


def list_best(candidates: Sequence[Candidate], scores: Floats, limit: int) -> list[Candidate]:
    """The candidates with the highest scores [n], over 0, best first."""
    best = np.argsort(-scores, kind="stable")[:limit].tolist()
    return [replace(candidates[n], score=float(scores[n])) for n in best if scores[n] > 0]


_LONGEST_TEXT = 20_000
"""Characters that are kept of what an application's source finds: it waits for later turns."""


@dataclass(frozen=True, slots=True)
class ApplicationSource:
    """Searches a source of the application for one turn, and checks what it gives."""

    source: RecallSource
    session: Session
    """The session as the turn found it."""

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        """The candidates; raises what the source raises, and InputError for what is no hit."""
        kind = self.source.kind
        hits = self.source.search(
            RecallQuery(
                text=add_keywords(query, intent),
                limit=limit,
                session=self.session.id,
                user_id=self.session.user_id,
                scope=self.session.scope,
                keywords=intent.keywords,
                when=intent.when,
            )
        )
        found: dict[str, Candidate] = {}
        for hit in (check_hit(kind, hit) for hit in hits):
            candidate = Candidate(
                id=f"{kind}_{NOT_IN_ID.sub('-', hit.id)}",
                kind=kind,
                text=cut(hit.text, _LONGEST_TEXT),
                title=hit.title,
                score=hit.score,
                tags=hit.tags,
                knowledge=self.source.knowledge,
            )
            found.setdefault(candidate.id, candidate)
        return sorted(found.values(), key=lambda c: -c.score)[:limit]


_OLDEST = 0.5
"""Weight of the oldest against the newest, all else equal."""


class NarrativeSource:
    """Searches summaries by recency-weighted words."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        described = [t for t in topics if t.summary or t.brief]
        self._newest = np.array([t.newest for t in described], dtype=float)
        self._candidates = [
            Candidate(
                id=f"narrative_{t.id}",
                kind="narrative",
                text=t.summary or t.brief,
                title=t.name,
                tags=("archived",) if t.status == "archived" else (),
            )
            for t in described
        ]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        age = 1 - self._newest / self._newest.max(initial=1.0)
        recency = 1 - (1 - _OLDEST) * age
        scores = score_words(self._candidates, add_keywords(query, intent), recency)
        return list_best(self._candidates, scores, limit)


def find_related_events(
    events: Sequence[DocumentEvent], focus: str, depth: int
) -> dict[str, tuple[int, Direction]]:
    """Events before and after one, by anchor, with how many steps away they are.

    A walk keeps its direction: what else comes after a predecessor is neither. The focus is not in
    the result, links to no event lead nowhere, and rings are walked once.
    """
    found: dict[str, tuple[int, Direction]] = {}
    for direction, links in _link_events(events).items():
        reached = {focus}
        for step in range(1, depth + 1):
            reached = {n for i in reached for n in links.get(i, ())} - found.keys() - {focus}
            found |= dict.fromkeys(sorted(reached), (step, direction))
    return found


def _link_events(events: Sequence[DocumentEvent]) -> Mapping[Direction, Mapping[str, set[str]]]:
    """The events right before and right after each, by anchor."""
    known = {get_anchor(event) for event in events} - {None}
    earlier, later = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for event in events:
        for field, there, back in (("after", earlier, later), ("before", later, earlier)):
            listed = event.get(field)
            for other in map(str, listed if isinstance(listed, list) else [listed]):
                own = get_anchor(event)
                if own is not None and other in known:
                    there[own].add(other)
                    back[other].add(own)
    return {"before": earlier, "after": later}


_DEPTH = 2
_NEAR = (1.0, 0.6)


class EventSource:
    """Searches events: neighbours of the focus (an anchor), and others by their words.

    Active events are in the skeleton already, and are only walked through here.
    """

    def __init__(self, events: Sequence[DocumentEvent], focus: str | None) -> None:
        near = find_related_events(events, focus, _DEPTH) if focus else {}
        over = {get_anchor(e): e for e in events if not is_active(e)}
        candidates = {
            anchor: Candidate(
                id=f"event_{anchor}",
                kind="event",
                text=format_yaml(event, {}),
                title=get_label(event),
                tags=near.get(anchor, ())[1:],
            )
            for anchor, event in over.items()
            if anchor and anchor != focus
        }
        self._candidates = list(candidates.values())
        self._near = [_NEAR[near[i][0] - 1] if i in near else 0.0 for i in candidates]

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        words = score_words(self._candidates, add_keywords(query, intent))
        return list_best(self._candidates, np.maximum(words, self._near), limit)
