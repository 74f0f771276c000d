"""One curation: every source is searched, a selector picks by previews, the picked are fetched."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock

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
from topicloom.domain.lore import LoreIndex
from topicloom.domain.selector import Selector, SelectRequest
from topicloom.domain.sources import CandidateSource, truncate
from topicloom.effects import Step, run_step
from topicloom.roles.calls import ask_role
from topicloom.state.layers import CuratedEntry, SourceKind
from topicloom.state.plan import TurnPlan
from topicloom.state.receipt import Call
from topicloom.state.session import Language
from topicloom.state.stored_message import StoredMessage

_ENTRY_TOKENS = 500
"""Tokens of one entry; of what is longer, its beginning is shown."""


@dataclass(frozen=True, slots=True)
class CurationRequest:
    """What a turn wants looked for. It holds the session as it is: later turns change nothing."""

    session: str
    turn: int
    """Number of the turn."""
    place: ConversationPosition
    """Where the conversation stands."""
    basis: str
    """Digest of what else the turn begins with. A turn that is taken again from its checkpoint has
    the same, and needs no curation of its own."""
    interest: TurnInterest
    """What the turn is about."""
    query: str
    """What to answer."""
    tail: Sequence[StoredMessage]
    """The messages before it, oldest first."""
    plan: TurnPlan
    language: Language
    sources: Mapping[SourceKind, CandidateSource]
    """Where to look."""
    seen: tuple[CuratedEntry, ...] = ()
    """Entries that the prompt shows already."""


@dataclass(frozen=True, slots=True)
class CurationOutcome:
    """What a curation came to."""

    result: CurationResult
    calls: tuple[Call, ...] = ()
    """What it cost."""


def run_curation(
    work: CurationRequest, selector: Selector, policy: CurationPolicy, closed: Event
) -> Step[CurationOutcome]:
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
    weights = {k: w for k, w in scale_weights(work.plan.search).items() if k in work.sources}
    wide = policy.candidates + len(work.seen)
    found, events = _search_sources(work, weights, wide)
    candidates = drop_shown(merge_candidates(found, weights, wide), work.seen)[: policy.candidates]
    made = Curation(turn=work.turn, candidates=len(candidates), events=tuple(events))
    if not candidates:
        return CurationOutcome(CurationResult(work.place, work.interest, made))
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
    selection, call = yield from ask_role("selector", selector, question)
    if selection is None:
        picks = pick_by_score(candidates, policy.picks)
    else:
        picks = select_by_id(selection.ids, candidates, policy.picks)
        made = made.model_copy(update={"rationale": selection.rationale, "model": selector.model})
    made = made.model_copy(update={"entries": tuple(_fetch_entries(picks, work.sources))})
    return CurationOutcome(CurationResult(work.place, work.interest, made), (call,))


def _search_sources(
    work: CurationRequest, kinds: Iterable[SourceKind], limit: int
) -> tuple[list[list[Candidate]], list[str]]:
    """What the sources found, side by side; and what went wrong in those that failed."""
    asked: dict[SourceKind, Future[list[Candidate]]] = {
        kind: submit_daemon(partial(work.sources[kind].search, work.query, work.plan.search, limit))
        for kind in kinds
    }
    wait(asked.values())
    failures = {kind: future.exception() for kind, future in asked.items()}
    events = [f"{k}: {type(e).__name__}: {e}" for k, e in failures.items() if e is not None]
    return [f.result() for k, f in asked.items() if failures[k] is None], events


def _fetch_entries(
    picks: Sequence[Candidate], sources: Mapping[SourceKind, CandidateSource]
) -> list[CuratedEntry]:
    """What was picked, with full texts, in the same order."""
    texts: dict[str, str] = {}
    for kind in {c.kind for c in picks}:
        texts |= sources[kind].fetch([c.id for c in picks if c.kind == kind])
    return [
        CuratedEntry(id=c.id, kind=c.kind, title=c.title, text=truncate(texts[c.id], _ENTRY_TOKENS))
        for c in picks
        if c.id in texts
    ]


_RUNNING = 16
"""Curations of all sessions at work at once: selectors that hang cannot take more threads."""
_SESSIONS = 1_000
"""Sessions whose results are kept; the longest unused make room."""


@dataclass(slots=True)
class _CurationJob:
    """A curation at work, or one that is done and may still be of use."""

    key: tuple[ConversationPosition, str]
    """The message that asked for it, and what its turn began with."""
    turn: int
    future: Future[CurationOutcome]
    told: bool = False
    """Whether its calls stand in a receipt."""


class Curator:
    """Runs curations and keeps what comes of them. Safe to use from several threads."""

    def __init__(
        self, selector: Selector, policy: CurationPolicy, lore: LoreIndex | None = None
    ) -> None:
        """Args:
        selector: Picks.
        policy: How much, how long, and what becomes of late results.
        lore: A shelf that is closed with it.
        """
        self.policy = policy
        self._selector = selector
        self._jobs: OrderedDict[str, list[_CurationJob]] = OrderedDict()
        self._running: set[Future[CurationOutcome]] = set()
        self._closed = Event()
        self._lock = Lock()
        # Also when the graph is dropped or the interpreter ends, so it may not hold the curator.
        self.close = weakref.finalize(self, _close, self._closed, lore)
        """Stop: nothing new is begun, and what is at work goes no further. May be called again."""

    def begin(self, work: CurationRequest) -> Future[CurationOutcome] | None:
        """Begin a curation; if a turn is taken again, it is the same one.

        Returns:
            What it will come to; None if too many are at work already, or it was closed.
        """
        key = (work.place, work.basis)
        with self._lock:
            jobs = self._jobs.setdefault(work.session, [])
            self._jobs.move_to_end(work.session)
            same = next((job.future for job in jobs if job.key == key), None)
            if same is not None or self._closed.is_set() or not self._has_room(jobs):
                return same
            steps = run_curation(work, self._selector, self.policy, self._closed)
            future = submit_daemon(partial(run_step, steps))
            self._running.add(future)
            jobs.append(_CurationJob(key, work.turn, future))
            self._clear(work)
            return future

    def collect(
        self,
        work: CurationRequest,
        future: Future[CurationOutcome] | None,
        refs: Sequence[str],
        waited: float,
    ) -> tuple[Curation, list[Call]]:
        """What a turn gets: its own curation, or an earlier one that was late for its turn.

        Args:
            work: What the turn wanted.
            future: What `begin` gave.
            refs: Refs of all messages of the conversation, in order.
            waited: Seconds that the turn waited.

        Returns:
            The curation; and calls for the receipt: those that stand in none yet, and last, if
            there was anything to pick from, one that says how the turn itself fared.
        """
        with self._lock:
            done = [job for job in self._jobs.get(work.session, ()) if job.future.done()]
            calls = [call for job in done for call in _take_unreported(job, work.turn)]
        own = Call(role="curation", seconds=waited)
        fault = self._fault(future)
        if future is not None and not fault:
            made = future.result().result.curation
            if made.candidates or made.events:
                events = "; ".join(made.events) or None
                calls.append(own.model_copy(update={"failure": events}))
            return made, calls
        served = find_prefetched(
            [job.future.result().result for job in done if job.future.exception() is None],
            turn=work.turn,
            interest=work.interest,
            refs=refs,
            seen=work.seen,
            policy=self.policy,
        )
        made = served or Curation(turn=work.turn)
        used = tuple(f"{e.id}, asked for by turn {made.turn}" for e in made.entries)
        return made, [*calls, own.model_copy(update={"failure": fault, "remarks": used})]

    def _fault(self, future: Future[CurationOutcome] | None) -> str:
        """Why a turn's own curation gives nothing; empty if it does."""
        if future is None:
            return "not begun: too many are at work"
        if not future.done():
            return f"not done within {self.policy.deadline:g} s"
        error = future.exception()
        return "" if error is None else f"{type(error).__name__}: {error}"

    def _has_room(self, jobs: Iterable[_CurationJob]) -> bool:
        self._running.difference_update([f for f in self._running if f.done()])
        at_work = sum(not job.future.done() for job in jobs)
        return at_work < self.policy.running and len(self._running) < _RUNNING

    def _clear(self, work: CurationRequest) -> None:
        """Drop results that are too many or too old, and sessions that nobody asks for."""
        jobs = self._jobs[work.session]
        done = [job for job in jobs if job.future.done()]
        stay = retain_recent(done, lambda job: job.turn, work.turn, self.policy)
        self._jobs[work.session] = [job for job in jobs if job in stay or not job.future.done()]
        while len(self._jobs) > _SESSIONS:
            self._jobs.popitem(last=False)


def _take_unreported(job: _CurationJob, turn: int) -> tuple[Call, ...]:
    """Calls of a curation that stand in no receipt yet; with a remark if another turn asked."""
    if job.told or job.future.exception() is not None:
        return ()
    job.told = True
    calls = job.future.result().calls
    if job.turn == turn:
        return calls
    late = (f"asked for by turn {job.turn}",)
    return tuple(c.model_copy(update={"remarks": (*c.remarks, *late)}) for c in calls)


def _close(closed: Event, lore: LoreIndex | None) -> None:
    closed.set()
    if lore is not None:
        lore.close()
