"""Whether a fact rests on what the user said: no model is believed on its word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from topicloom.effects import Step, arun_step, run_step
from topicloom.errors import UnusableAnswerError
from topicloom.index.words import words_of
from topicloom.reflection.chat_records import ChatRecords, choose_chat_records, select_native
from topicloom.reflection.due import (
    DueState,
    ReflectionMark,
    ReflectionPolicy,
    ReflectionProgress,
    mark_done,
)
from topicloom.reflection.facts import Claim, Fact, merge_facts
from topicloom.reflection.reflector import REFLECTOR, ReflectRequest
from topicloom.reflection.sessions import StoredSessionSource
from topicloom.roles.brief import BRIEF, BriefRequest
from topicloom.roles.calls import ask_first
from topicloom.roles.registry import Roles
from topicloom.state.briefs import BriefUpdate, apply_brief_updates, make_brief_update
from topicloom.state.receipt import Call
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage, parse_iso_seconds
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore

_OWN_SHARE = 2 / 3
"""Share of a fact's words that the user has to have said. The rest leaves room for turning "I
live" into "the user is living"; what a fact could get wrong, figures and most names, is whole
words of which none may be missing or few are there."""
_REPORTING = re.compile(r"\b(?:the )?users?(?:'s)?\b|\bsays?\b|用户|对方|本人|自己", re.IGNORECASE)
"""Words that tell of whom a fact is."""


@dataclass(frozen=True, slots=True)
class GroundedClaims:
    """What of a reflector's claims may be kept."""

    facts: tuple[tuple[Fact, tuple[str, ...]], ...]
    """Facts in order, each with the keys of those that it takes the place of."""
    dropped: Mapping[str, int]
    """How many were dropped, by reason."""


def ground_claims(
    claims: Sequence[Claim], records: Sequence[StoredMessage], ids: Mapping[str, str]
) -> GroundedClaims:
    """Keep the claims that rest on the user's own messages.

    Args:
        claims: What the reflector said.
        records: What it was given.
        ids: The lasting id of each record, by short id.
    """
    by_id = {r.id: r for r in records}
    dropped: Counter[str] = Counter()
    facts: list[tuple[Fact, tuple[str, ...]]] = []
    for claim in claims:
        reason = find_flaw(claim, by_id)
        if reason:
            dropped[reason] += 1
            continue
        newest = max((by_id[i] for i in claim.messages), key=_get_time_key)
        lasting = tuple(dict.fromkeys(ids[i] for i in claim.messages))
        facts.append((Fact(claim.text, lasting, newest.time), claim.supersedes))
    return GroundedClaims(tuple(facts), dict(dropped))


def find_flaw(claim: Claim, records: Mapping[str, StoredMessage]) -> str:
    """Why a claim may not be kept; "" if it may.

    Args:
        claim: What the reflector said.
        records: What it was given, by short id.
    """
    if not claim.messages:
        return "rests on no message"
    if any(i not in records for i in claim.messages):
        return "rests on a message that was not shown"
    own = [records[i] for i in claim.messages if records[i].role == "user"]
    if not own:
        return "rests on no message of the user"
    words = set(words_of(_REPORTING.sub(" ", claim.text)))
    said = {word for record in own for word in words_of(record.line)}
    if not words:
        return "says nothing"
    missing = words - said
    if len(missing) > (1 - _OWN_SHARE) * len(words) or any(map(_has_digit, missing)):
        return "is not in the user's words"
    return ""


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _get_time_key(record: StoredMessage) -> tuple[float, int]:
    return parse_iso_seconds(record.time) or 0.0, record.seq


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one reflection did."""

    session: str
    """The thread."""
    upto: int
    """Number of the last message that was reflected upon, now and before."""
    read: int = 0
    """Messages that were read."""
    source: str = "native"
    """Where they came from: `native` or `external`."""
    facts: tuple[Fact, ...] = ()
    """Facts that were written."""
    retired: tuple[str, ...] = ()
    """Keys of facts whose place others took."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many facts were not kept, by reason."""
    briefs: tuple[BriefUpdate, ...] = ()
    """Briefs for the graph to take in."""
    calls: tuple[Call, ...] = ()
    """Every call of a role."""
    reports: tuple[str, ...] = ()
    """What was wrong with external records."""


class ReflectionRunner:
    """Reflects upon sessions; what the scheduler calls."""

    def __init__(
        self,
        sessions: StoredSessionSource,
        roles: Roles,
        *,
        policy: ReflectionPolicy,
        clock: Callable[[], float],
        external: Callable[[str], object] | None = None,
    ) -> None:
        """Args:
        sessions: Where sessions stand.
        roles: Find facts and write briefs.
        policy: Says how much one reflection reads.
        clock: Tells the time in seconds since the epoch.
        external: The `chat_records` of a session, None for the native ones; see
            `choose_chat_records`.
        """
        self._sessions = sessions
        self._roles = roles
        self._policy = policy
        self._clock = clock
        self._external = external

    async def __call__(self, session: str) -> Reflection:
        """Reflect upon what was said since the last time, without blocking the event loop.

        Raises:
            UnusableAnswerError: If the reflector and its stand-in both failed.
            StorageError: If what is stored cannot be read.
        """
        return await arun_step(self.step(session))

    def run(self, session: str) -> Reflection:
        """The same in the calling thread."""
        return run_step(self.step(session))

    def step(self, session: str) -> Step[Reflection]:
        """The work itself.

        The mark is written last: after a crash before it everything is done again, and facts
        and briefs that are there already come out the same.
        """
        kept = self._sessions.kept
        core, store = self._sessions.open(session)
        progress = kept.progress([session]).get(session, ReflectionProgress())
        refs = store.transcript_refs(core)
        before = progress.upto(refs)
        unread = store.records(core, before + 1)
        native, last = select_native(unread, self._clock(), self._policy)
        if last is None:
            return Reflection(session, before)
        said = choose_chat_records(self._external(session) if self._external else None, native)
        calls: list[Call] = []
        found = yield from self._facts(core, said, calls)
        known = kept.facts(session)
        changed = merge_facts(found.facts, known)
        briefs = yield from self._briefs(core, store, unread[0].seq, last.seq, calls)
        kept.change_facts(session, changed)
        # A node that is late finds those left before, too, as far as they still fit.
        table = store.topic_table(core)
        earlier = [u for u in kept.briefs(session) if apply_brief_updates(table, [u])]
        kept.keep_briefs(session, list({u.topic: u for u in (*earlier, *briefs)}.values()))
        mark = ReflectionMark(upto=last.seq, ref=refs[last.seq - 1])
        self._sessions.keep(mark_done(DueState(session, 0, None, progress), mark))
        outdated = {"is outdated": changed.outdated} if changed.outdated else {}
        return Reflection(
            session=session,
            upto=last.seq,
            read=len(said.records),
            source=said.source,
            facts=changed.written,
            retired=changed.retired,
            dropped={**found.dropped, **outdated},
            briefs=tuple(briefs),
            calls=tuple(calls),
            reports=said.reports,
        )

    def _facts(self, core: Session, said: ChatRecords, calls: list[Call]) -> Step[GroundedClaims]:
        if not any(r.role == "user" for r in said.records):
            return GroundedClaims((), {})
        known = tuple(self._sessions.kept.facts(core.id).values())
        request = ReflectRequest(core.id, said.records, known, core.language)
        players = self._roles.in_turn(REFLECTOR)
        answer = yield from ask_first("reflector", players, request, calls)
        if answer is None:
            failures = "; ".join(str(c.failure) for c in calls)
            raise UnusableAnswerError(f"nobody could reflect upon {core.id!r}: {failures}")
        return ground_claims(answer, said.records, said.ids)

    def _briefs(
        self, core: Session, store: SessionStore, first: int, last: int, calls: list[Call]
    ) -> Step[list[BriefUpdate]]:
        """Briefs of the topics that hold any of the messages."""
        found: list[BriefUpdate] = []
        for topic, records in _find_touched(core, store, first, last):
            request = BriefRequest(core.id, topic, records, core.language)
            players = self._roles.in_turn(BRIEF)
            brief = yield from ask_first("brief", players, request, calls, topic.id)
            update = brief and make_brief_update(topic, brief.name or topic.name, brief.text)
            found += [update] if update else []
        return found


def _find_touched(
    core: Session, store: SessionStore, first: int, last: int
) -> list[tuple[Topic, list[StoredMessage]]]:
    """Open topics with messages of a stretch, and all their messages."""
    # Messages stand in a topic in order, and only what is before the tail stands in one.
    if first >= core.tail:
        return []
    near = [t for t in store.topic_table(core).open() if t.count]
    late = [t for t in near if store.topic_records(t, t.count - 1)[-1].seq >= first]
    whole = [(t, store.topic_records(t)) for t in late]
    return [(t, rs) for t, rs in whole if any(first <= r.seq <= last for r in rs)]
