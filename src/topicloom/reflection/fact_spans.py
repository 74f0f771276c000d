"""Spans in which facts hold: computed from when each was said, and from what it contradicts.

Nothing is written when a fact ends. Each fact says which others it contradicts; whichever of two
was said last ends the other. So two reflections that write at once lose nothing, and a fact that
is purged ends nothing any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from typing import NamedTuple

from topicloom.reflection.facts import Fact, FactChanges, Said
from topicloom.state.recall import find_number
from topicloom.state.stored_message import parse_iso_seconds

_REPLACED = 64
"""Keys of contradicted facts that a fact keeps: the newest."""
_MENTIONS = 16
"""Times that a fact was said of which a thread keeps a record: the first, and the newest."""


class ThreadFact(NamedTuple):
    """A fact as a thread of the user knows it."""

    thread: str
    scope: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class FactSpan:
    """A fact about a user for as long as it held, or holds."""

    key: str
    """`Fact.key`; a fact that held twice has two spans."""
    text: str
    since: str
    """ISO 8601: when it began by its words, else when it was said first."""
    until: str
    """When it ended, likewise; "" if it still holds."""
    thread: str
    """The thread in which it was said last."""
    scope: str
    """The scope of that thread."""
    messages: tuple[str, ...]
    """Short ids of the messages there that it rests on."""
    at: str
    """When it was said last within the span."""
    quote: str = ""
    """The user's own words, where they are others."""
    origin: str = ""
    """As in `Fact`."""
    held: bool = False
    """As in `Fact`."""

    def holds_at(self, seconds: float) -> bool:
        """True if it holds at a time, in seconds since the epoch."""
        since, until = parse_iso_seconds(self.since), parse_iso_seconds(self.until)
        return (since is None or since <= seconds) and (until is None or seconds < until)

    @property
    def ended(self) -> bool:
        """True if it was taken back or contradicted, whenever that was."""
        return bool(self.until)

    @property
    def value(self) -> dict[str, object]:
        """The span as JSON data."""
        return {
            "fact": self.text,
            "since": self.since,
            "until": self.until,
            "at": self.at,
            "thread": self.thread,
            "scope": self.scope,
            "messages": list(self.messages),
            "quote": self.quote,
            "origin": self.origin,
            "held": self.held,
        }


def record_facts(
    new: Sequence[tuple[Fact, Sequence[str]]], own: Mapping[str, Fact], known: Mapping[str, Fact]
) -> FactChanges:
    """The changes to the facts of one thread that new ones bring; none is removed.

    Doing it twice changes nothing the second time.

    Args:
        new: New facts, each with the keys of those that it contradicts.
        own: The facts of the thread, by key.
        known: All facts that were shown, those of the user's other threads too.
    """
    facts = dict(own)
    for fact, contradicted in new:
        before = facts.get(fact.key)
        heir = fact if before is None else _say_again(before, fact)
        others = [k for k in contradicted if k in facts or k in known]
        # What a fact contradicts, that which takes its place contradicts too.
        older = [(*(facts.get(k) or known[k]).replaces, k) for k in others]
        keys = dict.fromkeys((*heir.replaces, *(k for group in older for k in group)))
        keys.pop(heir.key, None)
        facts[heir.key] = replace(heir, replaces=tuple(keys)[-_REPLACED:])
    return FactChanges(tuple(f for key, f in facts.items() if own.get(key) != f))


def _say_again(before: Fact, after: Fact) -> Fact:
    said = sorted(dict.fromkeys((*list_said(before), *list_said(after))), key=_time_of)
    newest = said[-1]
    messages = tuple(dict.fromkeys((*before.messages, *after.messages)))
    return replace(
        before,
        messages=(*messages[:1], *messages[1:][-(_MENTIONS - 1) :]),
        at=newest.time,
        said=(said[0], *said[1:][-(_MENTIONS - 1) :]),
        quote=after.quote if newest in after.said else before.quote,
        origin=after.origin if newest in after.said else before.origin,
        held=before.held and after.held,
        since=before.since or after.since,
        until=after.until if newest in after.said else before.until,
    )


def list_said(fact: Fact) -> tuple[Said, ...]:
    """The times that a fact was said; of one that an application wrote, its own time."""
    return fact.said or (Said(fact.at, fact.messages[-1] if fact.messages else ""),)


def find_spans(facts: Iterable[ThreadFact]) -> list[FactSpan]:
    """The spans of facts, those that began first in front.

    Args:
        facts: What is to be seen of the user; of a fact that several threads know, each of them.
    """
    known = list(facts)
    contradicting: defaultdict[str, set[str]] = defaultdict(set)
    for _, _, fact in known:
        for key in fact.replaces:
            contradicting[fact.key].add(key)
            contradicting[key].add(fact.key)
    spans: defaultdict[str, list[FactSpan]] = defaultdict(list)
    for assertion in _in_order(known):
        _assert(spans, contradicting, assertion)
    found = (span for group in spans.values() for span in group)
    return sorted(found, key=lambda span: (parse_iso_seconds(span.since) or 0.0, span.at, span.key))


class _Assertion(NamedTuple):
    """A fact as it was said once."""

    said: Said
    source: ThreadFact
    first: bool

    @property
    def opening(self) -> str:
        fact = self.source.fact
        return fact.since if self.first and fact.since else self.said.time


def _in_order(known: Sequence[ThreadFact]) -> list[_Assertion]:
    said = [
        _Assertion(said, source, not place)
        for source in known
        for place, said in enumerate(list_said(source.fact))
    ]
    return sorted(said, key=cmp_to_key(_compare))


def _compare(one: _Assertion, other: _Assertion) -> int:
    """Below 0 if one was said before the other.

    In the same second the number of the message tells, in one thread; else what contradicts more,
    because what takes the place of another contradicts all that this did.
    """
    seconds = _time_of(one.said) - _time_of(other.said)
    if seconds:
        return 1 if seconds > 0 else -1
    numbers = _number_of(one.said) - _number_of(other.said)
    depths = len(one.source.fact.replaces) - len(other.source.fact.replaces)
    return (numbers or depths) if one.source.thread == other.source.thread else (depths or numbers)


def _assert(
    spans: defaultdict[str, list[FactSpan]],
    contradicting: Mapping[str, set[str]],
    assertion: _Assertion,
) -> None:
    thread, scope, fact = assertion.source
    key, opening = fact.key, assertion.opening
    if not fact.until and not fact.held:  # what it says of the past ends nothing
        for other in contradicting.get(key, ()):
            spans[other] = [_end(span, opening) for span in spans.get(other, ())]
    last = spans[key][-1] if spans[key] else None
    span = FactSpan(
        key=key,
        text=fact.text,
        since=opening,
        until=fact.until,
        thread=thread,
        scope=scope,
        messages=fact.messages,
        at=assertion.said.time,
        quote=fact.quote,
        origin=fact.origin,
        held=fact.held,
    )
    if last is not None and (not last.until or last.until == fact.until):
        since = min(last.since, opening, key=lambda t: parse_iso_seconds(t) or 0.0)
        spans[key][-1] = replace(span, since=since)
    else:
        spans[key].append(span)


def _end(span: FactSpan, at: str) -> FactSpan:
    """The span, ended at a time; at its own beginning, if it began later."""
    end, until = parse_iso_seconds(at) or 0.0, parse_iso_seconds(span.until)
    if until is not None and until <= end:
        return span
    since = parse_iso_seconds(span.since) or 0.0
    return replace(span, until=at if since < end else span.since)


def _time_of(said: Said) -> float:
    return parse_iso_seconds(said.time) or 0.0


def _number_of(said: Said) -> int:
    return find_number(said.message, "m") or 0


def limit_to_branch(fact: Fact, refs: Sequence[str]) -> Fact | None:
    """The fact as far as it was said on a branch, of which these are the messages' refs in order.

    None if it was not. What was said elsewhere than in a transcript is of every branch.
    """
    said = tuple(one for one in list_said(fact) if _is_on(one, refs))
    return replace(fact, said=said) if said else None


def _is_on(said: Said, refs: Sequence[str]) -> bool:
    number = _number_of(said)
    return not said.ref or (0 < number <= len(refs) and refs[number - 1] == said.ref)


def limit_to_time(fact: Fact, seconds: float) -> Fact | None:
    """The fact as far as it was said by a time, in seconds since the epoch; None if it was not."""
    said = tuple(one for one in list_said(fact) if _time_of(one) <= seconds)
    return replace(fact, said=said) if said else None
