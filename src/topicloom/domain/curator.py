"""Runs curations: what else is worth knowing, found beside the turn and not waited for too long.

Every source is searched, and a selector picks by previews. What comes too late for its own turn may
serve a later one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from threading import BoundedSemaphore, Lock

from cachetools import LRUCache

from topicloom.background import submit_daemon
from topicloom.domain.curation import (
    FAINT,
    STAND_IN,
    Candidate,
    Curation,
    drop_shown,
    merge_candidates,
    truncate,
)
from topicloom.domain.selector import Selector, SelectRequest
from topicloom.domain.sources import CandidateSource
from topicloom.effects import Step, run_step
from topicloom.errors import LimitReachedError
from topicloom.roles.calls import ask_role
from topicloom.state.layers import CuratedEntry
from topicloom.state.receipt import Call
from topicloom.state.safe_text import describe_error

_ENTRY_TOKENS = 500
"""Tokens of one entry; of what is longer, its beginning is shown."""
_RUNNING = 16
"""Curations of all sessions at work at once: selectors that hang cannot take more threads."""
_KEPT = 4
"""Curations of a session that are at work or kept."""
_SESSIONS = 1_000
"""Sessions whose curations are kept; the longest unused make room."""
_AGE = 5
"""Turns after its own in which a late result may still be used."""
_OVERLAP = 0.5
"""Share of the terms of whichever turn has fewer, from which two turns are about the same."""


@dataclass(frozen=True, slots=True)
class CurationOrigin:
    """The turn that a curation is for: a turn that is taken again from its checkpoint has the same.

    It decides which later turns may use a late result.
    """

    session: str
    turn: int
    head: str | None
    """Ref of the newest message, which stands for all up to it."""
    removals: tuple[int, str | None]
    """Digest of the purges, and the head of the edits: what was found before one may be gone."""
    basis: str
    """Digest of what else the turn begins with."""
    focus: str | None
    """Anchor of the event in focus."""
    terms: frozenset[str]
    """Words of what is looked for."""

    def may_serve(self, later: CurationOrigin, refs: Sequence[str]) -> bool:
        """True if a result is of use to a later turn; `refs` are of all messages that it sees."""
        fewer = min(len(self.terms), len(later.terms))
        alike = fewer > 0 and len(self.terms & later.terms) >= _OVERLAP * fewer
        same = self.focus is not None and self.focus == later.focus
        young = 0 < later.turn - self.turn <= _AGE
        return (alike or same) and young and self.removals == later.removals and self.head in refs


@dataclass(frozen=True, slots=True)
class CurationRequest:
    """A search for a turn. It holds the session as it is: later turns change nothing."""

    origin: CurationOrigin
    question: SelectRequest
    """The question for the selector, but for its candidates."""
    sources: Mapping[str, CandidateSource]
    """By kind."""
    weights: Mapping[str, float]
    """The weight of each kind that is searched."""
    limit: int = 50
    """Candidates to choose from."""
    seen: tuple[CuratedEntry, ...] = ()
    """Entries that the prompt shows already."""


def run_curation(
    request: CurationRequest, selector: Selector, found_best: Callable[[Curation], object]
) -> Step[Curation]:
    """Find and pick; the best by score stand in for a selector that fails.

    `found_best` is given these before the selector is asked, for a turn that cannot wait for it.
    """
    wide = request.limit + len(request.seen)
    found, failures = _search_sources(request, wide)
    merged = merge_candidates(found, request.weights, wide)
    candidates = drop_shown(merged, request.seen)[: request.limit]
    best = [c for c in candidates if c.score >= FAINT][: min(STAND_IN, request.question.limit)]
    made = Curation(tuple(map(_make_entry, best)), candidates=len(candidates), failures=failures)
    if not candidates:
        return made
    found_best(made)
    question = replace(request.question, candidates=candidates)
    try:
        selection, call = yield from ask_role("selector", selector, question)
    except LimitReachedError:  # the best by score stand in
        return made
    if selection is None:
        return replace(made, calls=(call,))
    known = {c.id: c for c in candidates}
    picks = [known[i] for i in dict.fromkeys(selection.ids) if i in known][: question.limit]
    return replace(
        made,
        entries=tuple(map(_make_entry, picks)),
        rationale=selection.rationale,
        model=selector.model,
        calls=(call,),
    )


def _search_sources(
    request: CurationRequest, limit: int
) -> tuple[list[list[Candidate]], tuple[str, ...]]:
    searches: dict[str, Future[list[Candidate]]] = {
        kind: submit_daemon(
            partial(source.search, request.question.query, request.question.plan.search, limit)
        )
        for kind, source in request.sources.items()
        if kind in request.weights
    }
    wait(searches.values())
    errors = {kind: future.exception() for kind, future in searches.items()}
    failures = tuple(f"{k}: {describe_error(e)}" for k, e in errors.items() if e is not None)
    return [f.result() for k, f in searches.items() if errors[k] is None], failures


def _make_entry(candidate: Candidate) -> CuratedEntry:
    return CuratedEntry(
        id=candidate.id,
        kind=candidate.kind,
        knowledge=candidate.knowledge,
        title=candidate.title,
        text=truncate(candidate.text, _ENTRY_TOKENS),
    )


@dataclass(slots=True)
class _CurationJob:
    """A curation at work, or one that is done and may still be of use."""

    origin: CurationOrigin
    future: Future[Curation] = field(init=False)
    best: Curation = field(default_factory=Curation)
    """The best of the search: it stands in for the selector until that has answered."""
    reported: bool = False
    """True once its calls stand in a receipt."""

    @property
    def result(self) -> Curation | None:
        """None if it is not done, or failed."""
        done = self.future.done() and self.future.exception() is None
        return self.future.result() if done else None

    def take_calls(self, turn: int) -> tuple[Call, ...]:
        """The calls that stand in no receipt yet, for the receipt of a turn."""
        if self.reported or self.result is None:
            return ()
        self.reported = True
        if self.origin.turn == turn:
            return self.result.calls
        late = f"asked for by turn {self.origin.turn}"
        return tuple(
            c.model_copy(update={"remarks": (*c.remarks, late)}) for c in self.result.calls
        )


class Curator:
    """Runs curations and keeps the newest of each session. Safe to use from several threads."""

    def __init__(self, selector: Selector, deadline: float) -> None:
        self._selector = selector
        self._deadline = deadline
        self._jobs: LRUCache[str, list[_CurationJob]] = LRUCache(_SESSIONS)
        self._slots = BoundedSemaphore(_RUNNING)
        self._lock = Lock()

    def begin(self, request: CurationRequest) -> Future[Curation] | None:
        """The future of a curation, the same if a turn is taken again.

        None if too many are at work already.
        """
        origin = request.origin
        with self._lock:
            jobs = self._jobs.get(origin.session, [])
            same = next((job.future for job in jobs if job.origin == origin), None)
            done = next((job for job in jobs if job.future.done()), None)
            full = len(jobs) == _KEPT
            if same or (full and done is None) or not self._slots.acquire(blocking=False):
                return same
            begun = _CurationJob(origin)
            note_best = partial(setattr, begun, "best")
            work = run_curation(request, self._selector, note_best)
            begun.future = submit_daemon(partial(run_step, work))
            begun.future.add_done_callback(lambda _: self._slots.release())
            kept = [job for job in jobs if not full or job is not done]
            self._jobs[origin.session] = [*kept, begun]
            return begun.future

    def collect(
        self,
        request: CurationRequest,
        future: Future[Curation] | None,
        refs: Sequence[str],
        waited: float,
    ) -> tuple[Curation, list[Call]]:
        """The curation of a turn, and calls to report.

        Where its own is not done: an earlier one that was late, else the best of its own search.
        Calls are reported once. The last one is the turn's own wait, if there was anything to pick.

        Args:
            request: The turn's request.
            future: Its curation; None if none was begun.
            refs: Refs of all messages of the conversation.
            waited: Seconds that the turn waited.
        """
        origin = request.origin
        with self._lock:
            jobs = list(self._jobs.get(origin.session, ()))
            calls = [call for job in jobs for call in job.take_calls(origin.turn)]
        own = Call(role="curation", began=round(time.time() - waited, 4), seconds=waited)
        fault = self._explain_fault(future)
        if future is not None and not fault:
            made = future.result()
            if made.candidates or made.failures:
                calls.append(own.model_copy(update={"failure": "; ".join(made.failures) or None}))
            return made, calls
        made, remarks = _find_late(jobs, request, refs)
        if not made.entries:
            made = next((job.best for job in jobs if job.future is future), made)
            remarks = ("the best of the search stand in",) if made.entries else ()
        return made, [*calls, own.model_copy(update={"failure": fault, "remarks": remarks})]

    def _explain_fault(self, future: Future[Curation] | None) -> str:
        """The reason why a turn's own curation gives nothing; empty if it does."""
        if future is None:
            return "not begun: too many are at work"
        if not future.done():
            return f"not done within {self._deadline:g} s"
        error = future.exception()
        return "" if error is None else describe_error(error)


def _find_late(
    jobs: Sequence[_CurationJob], request: CurationRequest, refs: Sequence[str]
) -> tuple[Curation, tuple[str, ...]]:
    """The newest late result that is of use to a turn, without what it has seen; and for whom."""
    seen = {(e.id, e.text) for e in request.seen}
    for job in reversed(jobs):
        if (late := job.result) and job.origin.may_serve(request.origin, refs):
            fresh = tuple(e for e in late.entries if (e.id, e.text) not in seen)
            if fresh:
                asked = tuple(f"{e.id}, asked for by turn {job.origin.turn}" for e in fresh)
                return replace(late, entries=fresh), asked
    return Curation(), ()
