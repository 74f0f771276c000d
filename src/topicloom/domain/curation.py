"""Candidates and results of a curation, and the choice of late results for later turns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, Field

from topicloom.domain.plan import SearchIntent
from topicloom.state.layers import CuratedEntry, Layer
from topicloom.state.receipt import Call


class Candidate(BaseModel, frozen=True):
    """Something that may be worth knowing for the reply, by its preview."""

    id: str
    """Its id among the candidates: `lore_3`, `narrative_t12`."""
    kind: str
    """The kind of its source."""
    knowledge: bool = False
    """True if it says how things are, not what happened."""
    title: str = ""
    """Its name, if it has one: others may mention it by that."""
    preview: str
    """Its beginning, about 100 tokens, in one line: all that a selector is shown."""
    text: str = ""
    """All of it."""
    score: float
    """Fit with the query, 0 to 1, comparable between kinds."""
    tags: tuple[str, ...] = ()
    """Remarks of the source, such as "archived"."""


STAND_IN = 3
"""Best candidates that are taken where no selector answers (the design's value)."""
FAINT = 0.2
"""Score under which nothing is taken by its score alone."""
PREVIEW_TOKENS = 100
"""Tokens of a preview (the design's value)."""
_PAST = 2.0
"""Factor of the weights of the conversation if the message is about the past."""


class CurationPolicy(BaseModel, frozen=True, extra="forbid"):
    """Limits of curations in number, time and age."""

    deadline: float = Field(default=1.5, ge=0)
    """Seconds that a turn waits at most; 0 never waits."""
    candidates: int = Field(default=50, ge=1)
    picks: int = Field(default=5, ge=1)
    age: int = Field(default=5, ge=1)
    """Turns after its own in which a late result may still be used."""
    kept: int = Field(default=4, ge=1)
    """Results kept for a session, the newest."""
    running: int = Field(default=4, ge=1)
    """Curations of a session that may be at work at once; a turn goes without one more."""


class Curation(BaseModel, frozen=True):
    """Entries that were picked for a turn."""

    turn: int
    entries: tuple[CuratedEntry, ...] = ()
    """Best first."""
    rationale: str = ""
    model: str = ""
    candidates: int = 0
    prefetched: bool = False
    """True if an earlier turn asked for it, which did not wait until it was done."""
    events: tuple[str, ...] = ()
    """Sources that failed, each with its error."""


def scale_weights(
    search: SearchIntent, own: Mapping[str, bool] = MappingProxyType({})
) -> dict[str, float]:
    """The weight of each kind of source; the strongest has 1.

    The application's `own` kinds count like lore (True) or like the conversation (False).
    """
    narrative = search.weights.narrative * (_PAST if search.when == "past" else 1.0)
    given = {
        "lore": search.weights.lore,
        "narrative": narrative,
        "event": search.weights.event,
        "topic": narrative,
        **{kind: search.weights.lore if known else narrative for kind, known in own.items()},
    }
    most = max(given.values())
    return {kind: weight / most for kind, weight in given.items() if weight > 0}


def merge_candidates(
    found: Iterable[Sequence[Candidate]], weights: Mapping[str, float], limit: int
) -> list[Candidate]:
    """The best candidates of all sources by weighted score, each id once, best first."""
    weighed = (
        c.model_copy(update={"score": c.score * weights.get(c.kind, 0.0)})
        for c in chain.from_iterable(found)
    )
    unique = {c.id: c for c in reversed(list(weighed))}
    return sorted(unique.values(), key=lambda c: (-c.score, c.id))[:limit]


def drop_shown(candidates: Iterable[Candidate], seen: Collection[CuratedEntry]) -> list[Candidate]:
    """Candidates that the prompt does not show already; what has changed since counts as new."""
    shown: dict[str, list[str]] = {}
    for entry in seen:
        shown.setdefault(entry.id, []).append(collapse_whitespace(entry.text))
    return [
        c
        for c in candidates
        if not any(text.startswith(c.preview.removesuffix("…")) for text in shown.get(c.id, ()))
    ]


def select_by_id(
    ids: Iterable[str], candidates: Sequence[Candidate], limit: int
) -> list[Candidate]:
    """The candidates of some ids, each once, in that order; ids of nothing are passed over."""
    known = {c.id: c for c in candidates}
    return [known[i] for i in dict.fromkeys(ids) if i in known][:limit]


def pick_by_score(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The best candidates by score, if they are worth anything: for where no selector answers."""
    return [c for c in candidates if c.score >= FAINT][: min(STAND_IN, limit)]


def collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


T = TypeVar("T")

_OVERLAP = 0.5
"""Share of the terms of whichever side has fewer, from which two turns are about the same."""


@dataclass(frozen=True, slots=True)
class TurnInterest:
    """The subject of a turn."""

    focus: str | None
    """Anchor of the event in focus."""
    terms: frozenset[str]

    def overlaps(self, other: TurnInterest) -> bool:
        """True if what was found for one is of use for the other."""
        same = self.focus is not None and self.focus == other.focus
        fewer = min(len(self.terms), len(other.terms))
        return same or (fewer > 0 and len(self.terms & other.terms) >= _OVERLAP * fewer)


@dataclass(frozen=True, slots=True)
class ConversationPosition:
    """A place in the conversation: everything up to one message."""

    count: int
    head: str | None
    """Ref of the last of them, which stands for all."""
    removals: tuple[int, str | None] = (0, None)
    """Digest of its purges, and the head of its edits: what was found before one may be gone."""

    def is_on_branch(self, refs: Sequence[str]) -> bool:
        """True if the conversation whose messages have these refs goes on from here."""
        return 0 < self.count <= len(refs) and refs[self.count - 1] == self.head


@dataclass(frozen=True, slots=True)
class CurationResult:
    """The result of a curation, with what decides which turns it may serve."""

    position: ConversationPosition
    interest: TurnInterest
    curation: Curation
    calls: tuple[Call, ...] = ()


def find_prefetched(
    results: Sequence[CurationResult],
    *,
    turn: int,
    interest: TurnInterest,
    removals: tuple[int, str | None],
    refs: Sequence[str],
    seen: Sequence[CuratedEntry],
    policy: CurationPolicy,
) -> Curation | None:
    """The newest result of an earlier turn that is of use to this one; None if there is none.

    `refs` are those of all messages, in order; a result of nothing but what was `seen` is no use,
    and none that was found before the newest of the `removals`.
    """
    shown = {(e.id, e.text) for e in seen}
    for result in sorted(results, key=lambda r: -r.curation.turn):
        made = result.curation
        young = 0 < turn - made.turn <= policy.age
        whole = result.position.removals == removals
        usable = whole and result.position.is_on_branch(refs) and result.interest.overlaps(interest)
        fresh = tuple(e for e in made.entries if (e.id, e.text) not in shown)
        if young and usable and fresh:
            return made.model_copy(update={"entries": fresh, "prefetched": True})
    return None


def retain_recent(
    items: Sequence[T], turn_of: Callable[[T], int], turn: int, policy: CurationPolicy
) -> list[T]:
    """The results that are worth keeping, those of the nearest turns, nearest first."""
    # Turns of the future stay: the session went back to an old checkpoint and may return.
    young = [i for i in items if turn - turn_of(i) <= policy.age]
    return sorted(young, key=lambda i: abs(turn - turn_of(i)))[: policy.kept]


def build_curated_layer(curation: Curation) -> Layer | None:
    """The layer of a curation; None if it found nothing."""
    if not curation.entries:
        return None
    return Layer(
        kind="probabilistic",
        entries=curation.entries,
        rationale=curation.rationale,
        model=curation.model,
    )
