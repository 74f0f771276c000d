"""Runs curations: what else is worth knowing, found beside the turn and not waited for too long.

Every source is searched, and a selector picks by previews.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass, field
from functools import partial
from threading import BoundedSemaphore, Event, Lock

from cachetools import LRUCache

from topicloom.background import submit_daemon
from topicloom.domain.curation import (
    Candidate,
    ConversationPosition,
    Curation,
    CurationPolicy,
    CurationResult,
    TurnInterest,
    drop_shown,
    find_prefetched,
    merge_candidates,
    pick_by_score,
    retain_recent,
    scale_weights,
    select_by_id,
)
from topicloom.domain.plan import TurnPlan
from topicloom.domain.recall_source import RecallSource
from topicloom.domain.selector import Selector, SelectRequest
from topicloom.domain.sources import (
    CandidateSource,
    truncate,
)
from topicloom.effects import Step, run_step
from topicloom.roles.calls import ask_role
from topicloom.state.language import Language
from topicloom.state.layers import CuratedEntry
from topicloom.state.receipt import Call
from topicloom.state.safe_text import describe_error
from topicloom.state.stored_message import StoredMessage

_ENTRY_TOKENS = 500
"""Tokens of one entry; of what is longer, its beginning is shown."""
_RUNNING = 16
"""Curations of all sessions at work at once: selectors that hang cannot take more threads."""
_SESSIONS = 1_000
"""Sessions whose results are kept; the longest unused make room."""


@dataclass(frozen=True, slots=True)
class CurationRequest:
    """A search for a turn. It holds the session as it is: later turns change nothing."""

    session: str
    turn: int
    position: ConversationPosition
    basis: str
    """Digest of what else the turn begins with. A turn that is taken again from its checkpoint has
    the same, and needs no curation of its own."""
    interest: TurnInterest
    query: str
    tail: Sequence[StoredMessage]
    """The messages before it, oldest first."""
    plan: TurnPlan
    language: Language
    sources: Mapping[str, CandidateSource]
    """By kind."""
    own: Mapping[str, RecallSource] = field(default_factory=dict)
    """The application's, by kind."""
    seen: tuple[CuratedEntry, ...] = ()


def run_curation(
    request: CurationRequest, selector: Selector, policy: CurationPolicy, closed: Event
) -> Step[CurationResult]:
    """Find and pick; where the selector fails, the best by score are taken.

    Raises:
        CancelledError: `closed` is set: the result is not wanted any more.
    """
    own = {kind: source.knowledge for kind, source in request.own.items()}
    weights = scale_weights(request.plan.search, own)
    weights = {kind: weight for kind, weight in weights.items() if kind in request.sources}
    wide = policy.candidates + len(request.seen)
    found, events = _search_sources(request, weights, wide)
    merged = merge_candidates(found, weights, wide)
    candidates = drop_shown(merged, request.seen)[: policy.candidates]
    made = Curation(turn=request.turn, candidates=len(candidates), events=tuple(events))
    if not candidates:
        return CurationResult(request.position, request.interest, made)
    if closed.is_set():
        raise CancelledError
    question = SelectRequest(
        session=request.session,
        query=request.query,
        tail=request.tail,
        plan=request.plan,
        candidates=candidates,
        limit=policy.picks,
        language=request.language,
        kinds={kind: source.purpose for kind, source in request.own.items()},
    )
    selection, call = yield from ask_role("selector", selector, question)
    if selection is None:
        picks = pick_by_score(candidates, policy.picks)
    else:
        picks = select_by_id(selection.ids, candidates, policy.picks)
        made = made.model_copy(update={"rationale": selection.rationale, "model": selector.model})
    entries = (
        CuratedEntry(
            id=c.id,
            kind=c.kind,
            knowledge=c.knowledge,
            title=c.title,
            text=truncate(c.text, _ENTRY_TOKENS),
        )
        for c in picks
    )
    made = made.model_copy(update={"entries": tuple(entries)})
    return CurationResult(request.position, request.interest, made, (call,))


def _search_sources(
    request: CurationRequest, kinds: Iterable[str], limit: int
) -> tuple[list[list[Candidate]], list[str]]:
    searches: dict[str, Future[list[Candidate]]] = {
        kind: submit_daemon(
            partial(request.sources[kind].search, request.query, request.plan.search, limit)
        )
        for kind in kinds
    }
    wait(searches.values())
    failures = {kind: future.exception() for kind, future in searches.items()}
    events = [f"{k}: {describe_error(e)}" for k, e in failures.items() if e is not None]
    return [f.result() for k, f in searches.items() if failures[k] is None], events


@dataclass(slots=True)
class _CurationJob:
    """A curation at work, or one that is done and may still be of use."""

    key: tuple[ConversationPosition, str]
    """The message that asked for it, and what its turn began with."""
    turn: int
    future: Future[CurationResult]
    reported: bool = False
    """True once its calls stand in a receipt."""

    def take_calls(self, turn: int) -> tuple[Call, ...]:
        """Calls that stand in no receipt yet; with a remark if another turn asked."""
        if self.reported or self.future.exception() is not None:
            return ()
        self.reported = True
        calls = self.future.result().calls
        if self.turn == turn:
            return calls
        late = f"asked for by turn {self.turn}"
        return tuple(c.model_copy(update={"remarks": (*c.remarks, late)}) for c in calls)


class Curator:
    """Runs curations and keeps what comes of them. Safe to use from several threads."""

    def __init__(
        self, selector: Selector, policy: CurationPolicy, closed: Event | None = None
    ) -> None:
        """`closed` is set when it is closed, to stop what its sources are at as well."""
        self.policy = policy
        self._selector = selector
        self._jobs: LRUCache[str, list[_CurationJob]] = LRUCache(_SESSIONS)
        self._slots = BoundedSemaphore(_RUNNING)
        self._closed = closed or Event()
        self._lock = Lock()
        # Also when the graph is dropped or the interpreter ends, so it may not hold the curator.
        self.close = weakref.finalize(self, self._closed.set)
        """Stop: nothing new is begun, and what is at work goes no further. May be called again."""

    def begin(self, request: CurationRequest) -> Future[CurationResult] | None:
        """The future of a curation, the same if a turn is taken again.

        None if too many are at work already, or the curator was closed.
        """
        key = (request.position, request.basis)
        with self._lock:
            jobs = self._jobs.get(request.session, [])
            same = next((job.future for job in jobs if job.key == key), None)
            running = [job for job in jobs if not job.future.done()]
            full = len(running) >= self.policy.running
            if same or self._closed.is_set() or full or not self._slots.acquire(blocking=False):
                return same
            done = [job for job in jobs if job not in running]
            stay = retain_recent(done, lambda job: job.turn, request.turn, self.policy) + running
            steps = run_curation(request, self._selector, self.policy, self._closed)
            future = submit_daemon(partial(_run_in_slot, self._slots, steps))
            kept = [job for job in jobs if job in stay]
            self._jobs[request.session] = [*kept, _CurationJob(key, request.turn, future)]
            return future

    def collect(
        self,
        request: CurationRequest,
        future: Future[CurationResult] | None,
        refs: Sequence[str],
        waited: float,
    ) -> tuple[Curation, list[Call]]:
        """The curation of a turn, its own or an earlier one that was late, and calls to report.

        Calls are reported once. The last one is the turn's own wait, if there was anything to pick.

        Args:
            request: The turn's request.
            future: Its curation; None if none was begun.
            refs: Refs of all messages of the conversation, in order.
            waited: Seconds that the turn waited.
        """
        with self._lock:
            done = [job for job in self._jobs.get(request.session, ()) if job.future.done()]
            calls = [call for job in done for call in job.take_calls(request.turn)]
        own = Call(role="curation", seconds=waited)
        fault = self._explain_fault(future)
        if future is not None and not fault:
            made = future.result().curation
            if made.candidates or made.events:
                calls.append(own.model_copy(update={"failure": "; ".join(made.events) or None}))
            return made, calls
        made = find_prefetched(
            [job.future.result() for job in done if job.future.exception() is None],
            turn=request.turn,
            interest=request.interest,
            removals=request.position.removals,
            refs=refs,
            seen=request.seen,
            policy=self.policy,
        ) or Curation(turn=request.turn)
        used = tuple(f"{e.id}, asked for by turn {made.turn}" for e in made.entries)
        return made, [*calls, own.model_copy(update={"failure": fault, "remarks": used})]

    def _explain_fault(self, future: Future[CurationResult] | None) -> str:
        """The reason why a turn's own curation gives nothing; empty if it does."""
        if future is None:
            return "not begun: too many are at work"
        if not future.done():
            return f"not done within {self.policy.deadline:g} s"
        error = future.exception()
        return "" if error is None else describe_error(error)


def _run_in_slot(slots: BoundedSemaphore, steps: Step[CurationResult]) -> CurationResult:
    try:
        return run_step(steps)
    finally:
        slots.release()
