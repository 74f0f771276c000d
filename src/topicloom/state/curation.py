"""Choosing what else is worth knowing: candidates of all sources together, and what came of them.

The probabilistic half of a prompt (spec 004, section 6). Sources find, a selector picks by
previews, and only what is picked is fetched whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from topicloom.state.candidates import Candidate, SourceKind
from topicloom.state.plan import SearchIntent

STAND_IN = 3
"""Best candidates that are taken where no selector answers (spec 004, 6.3.2)."""
FAINT = 0.2
"""Score under which nothing is taken by its score alone."""
PREVIEW_TOKENS = 100
"""Tokens of a preview (spec 004, 6.2.1)."""
_PAST = 2.0
"""Factor of what was told, when the message is about the past (spec 004, 6.2: "raised a lot")."""


class CurationPolicy(BaseModel):
    """How much is looked at, how long a turn waits for it, and what becomes of late results."""

    model_config = ConfigDict(frozen=True)

    deadline: float = Field(default=1.5, ge=0)
    """Seconds that a turn waits at most (spec 004, 6.5); 0 never waits."""
    candidates: int = Field(default=50, ge=1)
    """Candidates that the selector is shown (spec 004, 6.2)."""
    picks: int = Field(default=5, ge=1)
    """Candidates that it may pick (spec 004, 6.3.1)."""
    age: int = Field(default=5, ge=1)
    """Turns after its own in which a late result may still be used."""
    kept: int = Field(default=4, ge=1)
    """Results kept for a session, the newest."""
    running: int = Field(default=4, ge=1)
    """Curations of a session that may be at work at once; a turn goes without one more."""


class Entry(BaseModel):
    """Something picked, with its full text."""

    model_config = ConfigDict(frozen=True)

    id: str
    """Id of the candidate."""
    kind: SourceKind
    """What kind of source it is from."""
    title: str = ""
    """What it is called."""
    text: str
    """All of it."""


class Curation(BaseModel):
    """What a turn is given beside the conversation."""

    model_config = ConfigDict(frozen=True)

    turn: int
    """Number of the turn that it was made for."""
    entries: tuple[Entry, ...] = ()
    """What was picked, best first."""
    rationale: str = ""
    """Why, in a sentence."""
    model: str = ""
    """Who picked; empty if nobody did."""
    candidates: int = 0
    """Candidates that there were."""
    prefetched: bool = False
    """Whether an earlier turn asked for it, which did not wait until it was done."""
    events: tuple[str, ...] = ()
    """What went wrong, in words."""


def weights_of(search: SearchIntent) -> dict[SourceKind, float]:
    """How much each kind of source counts, the strongest 1; kinds that do not count are left out.

    Only the relations of the planner's weights say anything: weights of .2 all round mean the same
    as weights of .8.
    """
    told = search.weights.narrative * (_PAST if search.when == "past" else 1.0)
    given: dict[SourceKind, float] = {
        "lore": search.weights.lore,
        "narrative": told,
        "event": search.weights.event,
        "topic": told,
    }
    most = max(given.values())
    return {kind: weight / most for kind, weight in given.items() if weight > 0}


def merged(
    found: Iterable[Sequence[Candidate]], weights: Mapping[SourceKind, float], limit: int
) -> list[Candidate]:
    """The candidates of all sources in one row, best first.

    Args:
        found: Candidates of each source, with scores from 0 to 1 that mean the same in all.
        weights: How much each kind counts.
        limit: How many stay.
    """
    weighed = [
        c.model_copy(update={"score": c.score * weights.get(c.kind, 0.0)})
        for cs in found
        for c in cs
    ]
    unique = {c.id: c for c in reversed(weighed)}
    return sorted(unique.values(), key=lambda c: (-c.score, c.id))[:limit]


def unseen(candidates: Iterable[Candidate], seen: Collection[Entry]) -> list[Candidate]:
    """Candidates that the prompt does not show already, as they are now.

    What has the id of something shown but begins otherwise has changed since, and counts as new.
    """
    shown: dict[str, list[str]] = {}
    for entry in seen:
        shown.setdefault(entry.id, []).append(one_line(entry.text))
    return [
        c
        for c in candidates
        if not any(text.startswith(c.preview.removesuffix("…")) for text in shown.get(c.id, ()))
    ]


def picked(ids: Iterable[str], candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The candidates of some ids, each once, in that order; ids of nothing are passed over."""
    known = {c.id: c for c in candidates}
    return [known[i] for i in dict.fromkeys(ids) if i in known][:limit]


def stand_in(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    """What is taken where no selector answers: the best by score, if they are worth anything."""
    return [c for c in candidates if c.score >= FAINT][: min(STAND_IN, limit)]


def one_line(text: str) -> str:
    """A text without line breaks and runs of spaces."""
    return " ".join(text.split())
