"""The curator: curations beside the turn, which waits for them no longer than it likes.

One that is late goes on in the background, and a later turn may use what it comes to (spec 004,
6.5). All of this is in the memory of one process: a checkpoint knows nothing of it, and when the
process ends no more is lost than a few picks.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock

from topicloom.background import begin
from topicloom.domain.selector import Selector
from topicloom.effects import run
from topicloom.nodes.curation import Done, Work, curation
from topicloom.perception.sources.lore import Shelf
from topicloom.state.curation import Curation, CurationPolicy
from topicloom.state.prefetch import Place, kept, serving
from topicloom.state.receipt import Call

_RUNNING = 16
"""Curations of all sessions at work at once: selectors that hang cannot take more threads."""
_SESSIONS = 1_000
"""Sessions whose results are kept; the longest unused make room."""


@dataclass(slots=True)
class _Job:
    """A curation at work, or one that is done and may still be of use."""

    key: tuple[Place, str]
    """The message that asked for it, and what its turn began with."""
    turn: int
    future: Future[Done]
    told: bool = False
    """Whether its calls stand in a receipt."""


class Curator:
    """Runs curations and keeps what comes of them. Safe to use from several threads."""

    def __init__(
        self, selector: Selector, policy: CurationPolicy, lore: Shelf | None = None
    ) -> None:
        """Args:
        selector: Picks.
        policy: How much, how long, and what becomes of late results.
        lore: A shelf that is closed with it.
        """
        self.policy = policy
        self._selector = selector
        self._jobs: OrderedDict[str, list[_Job]] = OrderedDict()
        self._running: set[Future[Done]] = set()
        self._closed = Event()
        self._lock = Lock()
        # Also when the graph is dropped or the interpreter ends, so it may not hold the curator.
        self.close = weakref.finalize(self, _close, self._closed, lore)
        """Stop: nothing new is begun, and what is at work goes no further. May be called again."""

    def begin(self, work: Work) -> Future[Done] | None:
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
            steps = curation(work, self._selector, self.policy, self._closed)
            future = begin(partial(run, steps))
            self._running.add(future)
            jobs.append(_Job(key, work.turn, future))
            self._clear(work)
            return future

    def collect(
        self, work: Work, future: Future[Done] | None, refs: Sequence[str], waited: float
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
            calls = [call for job in done for call in _untold(job, work.turn)]
        own = Call(role="curation", seconds=waited)
        fault = self._fault(future)
        if future is not None and not fault:
            made = future.result().result.curation
            if made.candidates or made.events:
                events = "; ".join(made.events) or None
                calls.append(own.model_copy(update={"failure": events}))
            return made, calls
        served = serving(
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

    def _fault(self, future: Future[Done] | None) -> str:
        """Why a turn's own curation gives nothing; empty if it does."""
        if future is None:
            return "not begun: too many are at work"
        if not future.done():
            return f"not done within {self.policy.deadline:g} s"
        error = future.exception()
        return "" if error is None else f"{type(error).__name__}: {error}"

    def _has_room(self, jobs: Iterable[_Job]) -> bool:
        self._running.difference_update([f for f in self._running if f.done()])
        at_work = sum(not job.future.done() for job in jobs)
        return at_work < self.policy.running and len(self._running) < _RUNNING

    def _clear(self, work: Work) -> None:
        """Drop results that are too many or too old, and sessions that nobody asks for."""
        jobs = self._jobs[work.session]
        done = [job for job in jobs if job.future.done()]
        stay = kept(done, lambda job: job.turn, work.turn, self.policy)
        self._jobs[work.session] = [job for job in jobs if job in stay or not job.future.done()]
        while len(self._jobs) > _SESSIONS:
            self._jobs.popitem(last=False)


def _untold(job: _Job, turn: int) -> tuple[Call, ...]:
    """Calls of a curation that stand in no receipt yet; with a remark if another turn asked."""
    if job.told or job.future.exception() is not None:
        return ()
    job.told = True
    calls = job.future.result().calls
    if job.turn == turn:
        return calls
    late = (f"asked for by turn {job.turn}",)
    return tuple(c.model_copy(update={"remarks": (*c.remarks, *late)}) for c in calls)


def _close(closed: Event, lore: Shelf | None) -> None:
    closed.set()
    if lore is not None:
        lore.close()
