"""The facts that a thread sees, its own and those of its user, and what it shows of its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time

from topicloom.reflection.fact_spans import (
    FactSpan,
    ThreadFact,
    find_spans,
    limit_to_branch,
    limit_to_time,
)
from topicloom.reflection.facts import Fact
from topicloom.reflection.store import ReflectionStore
from topicloom.state.persons import get_person
from topicloom.state.session import Session
from topicloom.state.stored_message import parse_iso_seconds
from topicloom.storage.sessions import SessionStore


def see_facts(
    kept: ReflectionStore, store: SessionStore, session: Session, *, alone: bool = False
) -> list[FactSpan]:
    """The spans of all facts that a thread may see, those that began first in front.

    Of its own facts, what was said on its branch and not taken back. Of those of its user's other
    threads, all, or what was said by the time of its checkpoint if it is a fork of one; nothing if
    it is `alone`.
    """
    person = get_person(session)
    others = [] if alone or person is None else kept.shared_facts(person, but=session.id)
    until = parse_iso_seconds(session.facts_at)
    if until is not None:
        limited = (o._replace(fact=f) for o in others if (f := limit_to_time(o.fact, until)))
        others = list(limited)
    own = [ThreadFact(session.id, session.scope, f) for f in _see_own(kept, store, session)]
    return find_spans([*others, *own])


def find_facts(
    kept: ReflectionStore, store: SessionStore, session: Session, now: float, *, alone: bool = False
) -> dict[str, Fact]:
    """The facts that hold at the time `now`, in seconds since the epoch, by key; see `see_facts`.

    Those that began first are in front.
    """
    spans = see_facts(kept, store, session, alone=alone)
    return {span.key: to_fact(span) for span in spans if span.holds_at(now)}


def share_facts(kept: ReflectionStore, store: SessionStore, session: Session) -> None:
    """Show a thread's facts to the user's others, but those that it sees no more itself."""
    seen = {fact.key for fact in _see_own(kept, store, session)}
    kept.share(session.id, [f for key, f in kept.facts(session.id).items() if key in seen])


def end_day(day: date | None, now: datetime) -> datetime:
    """The end of a day in the zone of a clock; now if no day is given."""
    return now if day is None else datetime.combine(day, time.max, now.tzinfo)


def to_fact(span: FactSpan) -> Fact:
    return Fact(
        span.text,
        span.messages,
        span.at,
        since=span.since,
        until=span.until,
        quote=span.quote,
        origin=span.origin,
        held=span.held,
    )


def _see_own(kept: ReflectionStore, store: SessionStore, session: Session) -> Iterator[Fact]:
    refs = store.transcript_refs(session)
    gone = {f"m{number}" for number in store.superseded(session)}
    for fact in kept.facts(session.id).values():
        if gone.isdisjoint(fact.messages) and (seen := limit_to_branch(fact, refs)):
            yield seen
