"""One curation: every source is searched, a selector picks by previews, the picked are fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from functools import partial
from threading import Event

from topicloom.background import begin
from topicloom.domain.selector import Selector, SelectRequest
from topicloom.effects import Step
from topicloom.perception.sources.base import Source, begun
from topicloom.roles.calls import ask
from topicloom.state.candidates import Candidate, SourceKind
from topicloom.state.curation import (
    Curation,
    CurationPolicy,
    Entry,
    merged,
    picked,
    stand_in,
    unseen,
    weights_of,
)
from topicloom.state.plan import Plan
from topicloom.state.prefetch import Interest, Place, Result
from topicloom.state.receipt import Call
from topicloom.state.records import Record
from topicloom.state.session import Language

_ENTRY_TOKENS = 500
"""Tokens of one entry; of what is longer, its beginning is shown."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a turn wants looked for. It holds the session as it is: later turns change nothing."""

    session: str
    turn: int
    """Number of the turn."""
    place: Place
    """Where the conversation stands."""
    basis: str
    """Digest of what else the turn begins with. A turn that is taken again from its checkpoint has
    the same, and needs no curation of its own."""
    interest: Interest
    """What the turn is about."""
    query: str
    """What to answer."""
    tail: Sequence[Record]
    """The messages before it, oldest first."""
    plan: Plan
    language: Language
    sources: Mapping[SourceKind, Source]
    """Where to look."""
    seen: tuple[Entry, ...] = ()
    """Entries that the prompt shows already."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a curation came to."""

    result: Result
    calls: tuple[Call, ...] = ()
    """What it cost."""


def curation(work: Work, selector: Selector, policy: CurationPolicy, closed: Event) -> Step[Done]:
    """Find, pick and fetch.

    A source that fails costs what it would have found. Where the selector fails, the best by score
    are taken.

    Args:
        work: What to look for.
        selector: Picks.
        policy: How much.
        closed: Set when nobody will want the result any more.

    Raises:
        CancelledError: It is set.
    """
    weights = {k: w for k, w in weights_of(work.plan.search).items() if k in work.sources}
    wide = policy.candidates + len(work.seen)
    found, events = _found(work, weights, wide)
    candidates = unseen(merged(found, weights, wide), work.seen)[: policy.candidates]
    made = Curation(turn=work.turn, candidates=len(candidates), events=tuple(events))
    if not candidates:
        return Done(Result(work.place, work.interest, made))
    if closed.is_set():
        raise CancelledError
    question = SelectRequest(
        session=work.session,
        query=work.query,
        tail=work.tail,
        plan=work.plan,
        candidates=candidates,
        limit=policy.picks,
        language=work.language,
    )
    selection, call = yield from ask("selector", selector, question)
    if selection is None:
        picks = stand_in(candidates, policy.picks)
    else:
        picks = picked(selection.ids, candidates, policy.picks)
        made = made.model_copy(update={"rationale": selection.rationale, "model": selector.model})
    made = made.model_copy(update={"entries": tuple(_fetched(picks, work.sources))})
    return Done(Result(work.place, work.interest, made), (call,))


def _found(
    work: Work, kinds: Iterable[SourceKind], limit: int
) -> tuple[list[list[Candidate]], list[str]]:
    """What the sources found, side by side; and what went wrong in those that failed."""
    asked: dict[SourceKind, Future[list[Candidate]]] = {
        kind: begin(partial(work.sources[kind].search, work.query, work.plan.search, limit))
        for kind in kinds
    }
    wait(asked.values())
    failures = {kind: future.exception() for kind, future in asked.items()}
    events = [f"{k}: {type(e).__name__}: {e}" for k, e in failures.items() if e is not None]
    return [f.result() for k, f in asked.items() if failures[k] is None], events


def _fetched(picks: Sequence[Candidate], sources: Mapping[SourceKind, Source]) -> list[Entry]:
    """What was picked, with full texts, in the same order."""
    texts: dict[str, str] = {}
    for kind in {c.kind for c in picks}:
        texts |= sources[kind].fetch([c.id for c in picks if c.kind == kind])
    return [
        Entry(id=c.id, kind=c.kind, title=c.title, text=begun(texts[c.id], _ENTRY_TOKENS))
        for c in picks
        if c.id in texts
    ]
