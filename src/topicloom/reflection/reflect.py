"""Reflection upon sessions: facts that the user's own words bear out.

By a scheduler beside a graph, or once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Required, TypedDict, Unpack

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from topicloom.effects import Step, both
from topicloom.errors import UnusableAnswerError
from topicloom.reflection.chat_records import ChatRecords, choose_chat_records, select_native
from topicloom.reflection.due import (
    DueState,
    Reason,
    ReflectionMark,
    ReflectionPolicy,
    find_due_reason,
)
from topicloom.reflection.fact_spans import record_facts
from topicloom.reflection.facts import Fact
from topicloom.reflection.grounding import GroundedClaims, ground_claims
from topicloom.reflection.persons import find_facts, share_facts
from topicloom.reflection.reflector import REFLECTOR, ReflectRequest
from topicloom.reflection.scheduler import ReflectionScheduler, read_system_clock
from topicloom.reflection.sessions import StoredSessionSource
from topicloom.reflection.store import ReflectionStore
from topicloom.roles.calls import ask_first
from topicloom.roles.registry import Roles
from topicloom.state.persons import get_person
from topicloom.state.receipt import Call
from topicloom.state.session import Session
from topicloom.storage.base import Storage


@dataclass(frozen=True, slots=True)
class Reflection:
    """The outcome of one reflection."""

    session: str
    upto: int
    """Number of the last message that any reflection has read."""
    read: int = 0
    """Number of messages that this one read."""
    source: str = "native"
    """The source of these: `native` or `external`."""
    facts: tuple[Fact, ...] = ()
    retired: tuple[str, ...] = ()
    """Keys of facts that held and that others contradict."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Numbers of facts that were not kept, by reason."""
    calls: tuple[Call, ...] = ()
    reports: tuple[str, ...] = ()
    """Faults of external records."""


@dataclass(frozen=True, slots=True)
class ReflectionRunner:
    """Reflects upon sessions, on the event loop or in the calling thread."""

    sessions: StoredSessionSource
    roles: Roles
    external: Callable[[str], object] | None = None
    """Gives the `chat_records` of a session, None for the native ones; see
    `choose_chat_records`."""

    def _run(self, thread: str) -> Step[Reflection]:
        """Read what is new, write facts, and mark how far that was.

        The mark is written last: after a crash before it everything is done again, and facts that
        are there already come out the same.

        Raises:
            UnusableAnswerError: If the reflector and its stand-in both failed.
            StorageError: If what is stored cannot be read.
            LimitReachedError: If a daily limit is nearly used up.
        """
        with self.roles.telemetry.watch("topicloom.reflection", thread) as work:
            done = yield from self._reflect(thread, work.calls)
            work.attributes["topicloom.reflection.read"] = done.read
            work.attributes["topicloom.reflection.facts"] = len(done.facts)
        return done

    run, __call__ = both(_run)

    def _reflect(self, thread: str, calls: list[Call]) -> Step[Reflection]:
        kept = self.sessions.store
        session, store = self.sessions.open(thread)
        if self.roles.spending:
            self.roles.spending.open(session, kept.store)
        progress = kept.progress(thread)
        refs = store.transcript_refs(session)
        before = progress.find_reached(refs)
        unread = store.messages(session, before + 1)
        native, last = select_native(unread, self.sessions.clock(), self.sessions.policy)
        if last is None:
            return Reflection(thread, before)
        said = choose_chat_records(self.external(thread) if self.external else None, native)
        here = {m.id: refs[m.seq - 1] for m in native} if said.source == "native" else {}
        known = find_facts(kept, store, session, self.sessions.clock())
        found = yield from self._find_facts(session, said, here, known, calls)
        hold = self.sessions.policy.hold_imported
        new = [(replace(f, held=hold and bool(f.origin)), keys) for f, keys in found.facts]
        changed = record_facts(new, kept.facts(thread), known)
        person = get_person(session)
        if person is not None:
            kept.set_person(thread, person)
        kept.change_facts(thread, changed)
        if person is not None:
            share_facts(kept, store, session)
        mark = ReflectionMark(upto=last.seq, ref=refs[last.seq - 1])
        self.sessions.save_progress(thread, progress.reach(mark))
        ended = (k for fact in changed.written for k in fact.replaces if k in known)
        return Reflection(
            session=thread,
            upto=last.seq,
            read=len(said.messages),
            source=said.source,
            facts=changed.written,
            retired=tuple(dict.fromkeys(ended)),
            dropped=found.dropped,
            calls=tuple(calls),
            reports=said.reports,
        )

    def _find_facts(
        self,
        session: Session,
        said: ChatRecords,
        refs: Mapping[str, str],
        known: Mapping[str, Fact],
        calls: list[Call],
    ) -> Step[GroundedClaims]:
        if not any(m.of_user for m in said.messages):
            return GroundedClaims((), {})
        facts = tuple(known.values())
        request = ReflectRequest(session.id, said.messages, facts, session.language)
        roles = self.roles.in_turn(REFLECTOR)
        answer = yield from ask_first("reflector", roles, request, calls)
        if answer is None:
            failures = "; ".join(str(c.failure) for c in calls)
            raise UnusableAnswerError(
                "nobody could reflect upon {session!r}: {failures}",
                session=session.id,
                failures=failures,
            )
        return ground_claims(answer, said.messages, said.ids, refs)


class ReflectionOptions(TypedDict, total=False):
    """The parts of a graph that reflection needs, and its own options."""

    checkpointer: Required[BaseCheckpointSaver[Any]]
    """The one that the graph was compiled with."""
    storage: Required[Storage]
    """The one that the graph was built with, or another over the same place."""
    store: Required[BaseStore]
    """Holds facts, marks and leases; may be shared by many processes and machines."""
    roles: Required[Roles]
    """Find facts: `open_roles(...)`, with the options of the graph."""
    policy: ReflectionPolicy
    """When sessions are due; the defaults if not given."""
    clock: Callable[[], datetime]
    """Tells the time, with its zone; the system's if not given."""
    external: Callable[[str], object]
    """The application's own `chat_records` of a session, None for the transcript."""


def reflect_beside(
    *,
    only: Collection[str] | None = None,
    review: Callable[[str], Awaitable[object]] | None = None,
    **options: Unpack[ReflectionOptions],
) -> ReflectionScheduler:
    """A scheduler that reflects upon the sessions of a graph; it has still to be started.

    Args:
        review: Reviews a session, once a day when it is silent; nobody does if not given.
        only: The sessions that it looks after; all of the storage if not given.
        options: See `ReflectionOptions`.
    """
    runner, clock = _make_runner(options, only)
    sessions = runner.sessions
    return ReflectionScheduler(sessions, runner, sessions.policy, clock, review=review)


@dataclass(frozen=True, slots=True)
class ReflectionResult:
    """The outcome of `reflect_once`."""

    state: DueState
    reason: Reason | None
    """The reason why it was due; None if it was not."""
    reflections: tuple[Reflection, ...]
    """The reflections, in order: one reads only so many messages."""


def reflect_once(
    session: str, *, force: bool = False, **options: Unpack[ReflectionOptions]
) -> ReflectionResult:
    """Reflect upon a session in the calling thread if it is due.

    Args:
        session: The thread.
        force: Whether to read what is pending though it is not due.
        options: See `ReflectionOptions`.

    Raises:
        SessionBusyError: Another reflects upon it just now.
        UnusableAnswerError: The reflector and its stand-in both failed.
        StorageError: What is stored cannot be read.
    """
    runner, clock = _make_runner(options, [session])
    sessions, kept, policy = runner.sessions, runner.sessions.store, runner.sessions.policy
    now = clock().timestamp()
    with kept.hold_lease(session, now, policy) as owner:
        state = sessions.get_state(session)
        reason, progress = find_due_reason(state, now, policy), state.progress
        found: list[Reflection] = []
        while force or reason:
            done = runner.run(session)
            before, progress = progress, kept.progress(session)
            if progress == before:
                break
            found.append(done)
            kept.renew_lease(session, owner, clock().timestamp(), policy)
        return ReflectionResult(state, reason, tuple(found))


def _make_runner(
    options: ReflectionOptions, only: Collection[str] | None
) -> tuple[ReflectionRunner, Callable[[], datetime]]:
    clock = options.get("clock") or read_system_clock
    sessions = StoredSessionSource(
        checkpointer=options["checkpointer"],
        storage=options["storage"],
        store=ReflectionStore(options["store"]),
        policy=options.get("policy") or ReflectionPolicy(),
        clock=lambda: clock().timestamp(),
        only=only,
    )
    return ReflectionRunner(sessions, options["roles"], options.get("external")), clock
