"""The newest session of each line of turns, for writers that go on with one line at a time.

A checkpoint says where a run began; a head says how far its line has got meanwhile. No place has
to compare and set: whoever ends a turn writes a head of its own, and looks for others only then.
So of two that do so at once at least one sees the other's, and takes over what it says.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from topicloom.errors import MissingRecordError
from topicloom.state.journal import JournalEntry
from topicloom.state.recall import parse_message_number
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage, make_message_key
from topicloom.storage.base import EDITS, HEADS, SUPERSEDED, TRANSCRIPT
from topicloom.storage.caches import count_shared
from topicloom.storage.sessions import SessionStore
from topicloom.storage.superseding import supersede

_EARLIER = "/earlier/"
"""Behind a thread's name, the line of a conversation that its checkpoints no longer know."""
_LINES = 16
"""Heads that are kept of other lines: forks that are gone on with once in a while."""


@dataclass(frozen=True, slots=True)
class Head:
    """A session as a turn of it ended."""

    ref: str
    session: Session
    time: float
    """When it was written, in seconds since the epoch, by the machine's clock: a session's own may
    go through recorded times, and says nothing of which of two processes came first."""


def find_rivals(
    store: SessionStore, session: Session, heads: Sequence[Head] | None = None
) -> list[Head]:
    """The heads of a session's line that it does not go on from, the oldest first.

    Among all of its heads as they are now, unless these were read already. Where there are none,
    another process may have deleted the session: nothing of it is in memory then.
    """
    heads = read_heads(store) if heads is None else heads
    newest = session.transcript
    if not heads and newest and not store.log.standing(TRANSCRIPT, [newest]):
        store.log.forget()
    return [head for head in heads if _is_rival(store, session, head.session)]


def catch_up(store: SessionStore, session: Session) -> Session:
    """The session behind what other writers did since; all that this writes is storage."""
    for head in find_rivals(store, session) if session.count else ():
        session = merge_sessions(store, session, head.session)
    return session


def find_newest(store: SessionStore, thread: str) -> Session:
    """The session as the turn of its thread that ended last left it; a new one if none did."""
    lines = (head.session for head in read_heads(store))
    own = [s for s in lines if not s.line or s.line.startswith(f"{thread}/")]
    return own[-1] if own else Session(id=thread)


def publish(
    store: SessionStore,
    session: Session,
    replaced: Collection[str] = (),
    heads: Sequence[Head] | None = None,
) -> str:
    """Write a session as the head of its line, in the place of those that it goes on from.

    These are looked for among all heads, unless they were read already.

    Returns:
        The ref of the head. `find_rivals` says whether another was written meanwhile.
    """
    heads = read_heads(store) if heads is None else heads
    line = [head for head in heads if head.session.line == session.line]
    others = [h for h in heads if h.session.line != session.line and _EARLIER not in h.session.line]
    passed = [head for head in line if not _is_rival(store, session, head.session)]
    gone = {head.ref for head in (*passed, *others[:-_LINES])} | set(replaced)
    return _write_head(store, session, time.time(), gone)


def set_aside(store: SessionStore, thread: str, heads: Sequence[Head]) -> None:
    """Put heads that no checkpoint leads to on lines of their own, where `gather` finds them."""
    for head in heads:
        line = f"{thread}{_EARLIER}{head.session.transcript}"
        alone = head.session.model_copy(update={"line": line})
        _write_head(store, alone, head.time, [head.ref])


def gather(store: SessionStore, thread: str) -> Session:
    """All that is stored of a thread as one conversation, but for forks; the newest of these if
    there is nothing else, and a new one if nothing is.

    What was set aside comes behind or before the rest as `merge_sessions` has it.
    """
    lines = (head.session for head in read_heads(store))
    own = [s for s in lines if not s.line or s.line.startswith(thread + _EARLIER)]
    whole = reduce(partial(merge_sessions, store), own or [find_newest(store, thread)])
    return whole.model_copy(update={"line": ""})


def _write_head(store: SessionStore, session: Session, at: float, gone: Collection[str]) -> str:
    body = {"session": session.model_dump(mode="json", exclude_defaults=True), "time": at}
    return store.log.replace_rows(HEADS, body, gone)


def merge_sessions(store: SessionStore, one: Session, other: Session) -> Session:
    """Two sessions that went on from the same without knowing of each other, as one.

    That with more turns comes first; of the other one what was said and edited comes behind it.
    Its topics and notes give way: they can be made again of the messages.
    """
    onto, session = (one, other) if one.turn > other.turn else (other, one)
    own = find_missing(store, session, onto)
    merged = store.append(
        onto, [m.model_copy(update={"seq": n}) for n, m in enumerate(own, onto.count + 1)]
    )
    merged = _carry_edits(store, session, onto, merged)
    for entry in find_edits(store, session, onto):
        number = parse_message_number(entry.message) + merged.count - session.count
        moved = {"turn": onto.turn + 1, "message": f"m{number}"}
        merged = store.add_edits(merged, entry.model_copy(update=moved))
    return merged


def find_edits(store: SessionStore, one: Session, other: Session) -> list[JournalEntry]:
    """The edits of the document that one of two sessions has and the other has not."""
    shared = count_shared(store.log.refs(EDITS, one.edits), store.log.refs(EDITS, other.edits))
    return store.journal(one)[shared:]


def read_heads(store: SessionStore) -> list[Head]:
    """The heads of all lines, the oldest first."""
    rows = store.log.rows(HEADS)
    heads = [
        Head(ref, Session.model_validate(row["session"]), row["time"]) for ref, row in rows.items()
    ]
    return sorted(heads, key=lambda head: head.time)


def _is_rival(store: SessionStore, session: Session, head: Session) -> bool:
    """True if a head is of the same line and conversation, and the session not behind it."""
    if head.line != session.line:
        return False
    try:
        refs, theirs = store.transcript_refs(session), store.transcript_refs(head)
    except MissingRecordError:  # of a storage that was put back to an earlier state
        return False
    related = not (session.turn and head.turn) or theirs[:1] == refs[:1]
    later = head.turn >= session.turn and head.turns != session.turns
    return related and (later or bool(find_missing(store, head, session)))


def find_missing(store: SessionStore, one: Session, other: Session) -> list[StoredMessage]:
    """The messages of one session that another has not, wherever they stand there."""
    shared = count_shared(store.transcript_refs(one), store.transcript_refs(other))
    known = {make_message_key(m.message) for m in store.originals(other, shared + 1)}
    rest = store.originals(one, shared + 1)
    return [m for m in rest if make_message_key(m.message) not in known]


def _carry_edits(store: SessionStore, one: Session, other: Session, merged: Session) -> Session:
    """The merged session with those edits of the conversation that one has and the other has not.

    The other is what comes first in it.
    """
    log, edits = store.log, store.edits(one)
    both = [log.refs(SUPERSEDED, session.superseded) for session in (one, other)]
    if fresh := edits[count_shared(*both) :]:
        said = {make_message_key(m.message): m.seq for m in store.originals(merged)}
        numbers = {m.seq: said[make_message_key(m.message)] for m in store.originals(one)}
        for edit in fresh:
            merged = supersede(store, merged, edit.renumber(numbers))
    return merged
