"""What is wrong with a session that is stored, and making anew what the transcript still tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from topicloom.errors import StorageError
from topicloom.state.recall import parse_message_number
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.base import (
    CHANGES,
    EDITS,
    LEDGER,
    ROSTER,
    SUPERSEDED,
    TIMELINE,
    TRANSCRIPT,
    TURNS,
)
from topicloom.storage.log import SessionLog
from topicloom.storage.references import read_references
from topicloom.storage.sessions import SessionStore
from topicloom.texts import FilledText

_MENDS = {
    ROSTER: "all messages go back to the tail, and the next turns split them into topics anew",
    TIMELINE: "made anew from the topics",
    LEDGER: "begins anew: nothing of the conversation is in it",
    TURNS: "goes on behind the receipts that are left",
    SUPERSEDED: "goes on behind the edits that are left, and all messages go back to the tail",
    EDITS: "goes on behind the edits that are left",
    CHANGES: "goes on behind the changes that are left",
}
_BACKUP = "restore it from a backup"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a session."""

    place: str
    """The chain that it is in; `messages` for the channel, `checkpoints` for a lack of them."""
    what: str
    mend: str = ""
    """What a repair does about it; "" where it can do nothing."""


def find_faults(session: Session, store: SessionStore) -> list[Fault]:
    """What is wrong with a session; reads all of it."""
    log, faults = store.log, list[Fault]()

    def try_reading(place: str, mend: str, read: Callable[[], object]) -> None:
        try:
            read()
        except (StorageError, ValueError, KeyError) as error:
            faults.append(Fault(place, str(error), mend))

    try_reading(TRANSCRIPT, "", lambda: store.originals(session))
    for chain, mend in _MENDS.items():
        head = getattr(session, chain)
        try_reading(chain, mend, lambda: log.read(chain, log.refs(chain, head)))  # noqa: B023
    if all(fault.place != ROSTER for fault in faults):
        for topic in _current_topics(session, store):
            mend = "made anew from the transcript"
            refs = partial(log.refs, topic.chain, topic.head)
            try_reading(topic.chain, mend, lambda: log.read(topic.chain, refs()))  # noqa: B023
            mend = "begins anew, without references to other topics"
            try_reading(topic.references, mend, partial(read_references, store, topic))
    known = "".join(fault.what for fault in faults)
    return faults + [Fault("storage", one) for one in log.reports() if one not in known]


def mend_session(session: Session, store: SessionStore, faults: Sequence[Fault]) -> Session:
    """The session with what could be made anew; nothing that is stored is removed or changed.

    Raises:
        StorageError: The transcript is damaged: all else is made of it.
    """
    broken = {fault.place for fault in faults}
    if TRANSCRIPT in broken:
        raise StorageError(
            "the transcript of session {session!r} is damaged: {problem}",
            session=session.id,
            problem=FilledText(_BACKUP),
        )
    for chain in broken & {TURNS, EDITS, SUPERSEDED, CHANGES}:
        session = session.model_copy(update={chain: _find_longest(store.log, chain)})
    if broken & {LEDGER, ROSTER, SUPERSEDED}:
        session = session.model_copy(update={"ledger": None, "ledger_tokens": 0})
    if broken & {ROSTER, SUPERSEDED}:
        empty: dict[str, Any] = {
            "roster": None,
            "timeline": None,
            "home": None,
            "tail": 1,
            "view": 1,
            "active": {},
        }
        return session.model_copy(update=empty)
    topics = _current_topics(session, store)
    lost = [topic for topic in topics if topic.chain in broken]
    made = [store.refill(topic, own) for topic, own in _assign(session, store, lost)]
    alone = [t for t in topics if t.references in broken]
    fresh = {topic.id: topic for topic in (*alone, *made)}
    for topic in alone:
        fresh[topic.id] = fresh[topic.id].model_copy(update={"borrowed": None})
    session = store.save_topics(session, list(fresh.values()))
    if TIMELINE in broken:
        session = session.model_copy(update={"timeline": None})
        for topic in _current_topics(session, store):
            session = store.add_days(session, topic, group_rounds(store.topic_messages(topic)))
    return session


def _current_topics(session: Session, store: SessionStore) -> list[Topic]:
    return [t for t in store.topic_table(session) if t.status in ("open", "archived")]


def _find_longest(log: SessionLog, chain: str) -> str | None:
    """The head of the longest branch of a chain that can be read from its beginning."""
    prevs = log.entries(chain)
    readable, longest = log.readable(chain, list(prevs)), list[str]()
    for leaf in prevs.keys() - set(prevs.values()):
        ref, path = leaf, list[str]()
        while ref in prevs:
            path.append(ref) if ref in readable else path.clear()
            before = prevs[ref]
            if before is None and len(path) > len(longest):
                longest = path
            ref = before or ""
    return longest[0] if longest else None


def _assign(
    session: Session, store: SessionStore, lost: Sequence[Topic]
) -> list[tuple[Topic, list[StoredMessage]]]:
    """The messages that are in no topic that can be read, by the topics that cannot.

    Of several, the one has a message that the time index says was spoken of around it.
    """
    if not lost:
        return []
    others = [t for t in _current_topics(session, store) if t not in lost]
    placed = {message.seq for topic in others for message in store.topic_messages(topic)}
    owners: dict[str, list[StoredMessage]] = {topic.id: [] for topic in lost}
    spans = [span for span in _read_spans(session, store) if span[2] in owners]
    owner = lost[0].id
    for message in store.messages(session, 1, session.tail - 1):
        if message.seq not in placed:
            around = [s for s in spans if s[0] <= message.seq <= s[1]]
            owner = min(around, key=lambda s: s[1] - s[0])[2] if around else owner
            owners[owner].append(message)
    return [(topic, owners[topic.id]) for topic in lost]


def _read_spans(session: Session, store: SessionStore) -> list[tuple[int, int, str]]:
    """First and last number of every entry of the time index, and its topic; none if it is lost."""
    try:
        rows = store.log.read(TIMELINE, store.log.refs(TIMELINE, session.timeline))
    except StorageError:
        return []
    number = parse_message_number
    return [
        (number(row["first"]), number(row["last"]), row["topic"]) for row in rows if "first" in row
    ]
