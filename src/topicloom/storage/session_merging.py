"""Two sessions that went on from the same without knowing of each other, made one."""

from __future__ import annotations

from topicloom.state.identity import map_numbers, select_missing
from topicloom.state.journal import JournalEntry
from topicloom.state.recall import parse_message_number
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.base import EDITS, SUPERSEDED
from topicloom.storage.caches import count_shared
from topicloom.storage.sessions import SessionStore
from topicloom.storage.superseding import supersede


def merge_sessions(store: SessionStore, one: Session, other: Session) -> Session:
    """Two sessions that went on from the same without knowing of each other, as one.

    The one with more turns comes first; what was said and edited in the other one comes behind it.
    The other one's topics and notes are dropped: they can be made again of the messages.
    """
    onto, session = (one, other) if one.turn > other.turn else (other, one)
    own = find_missing(store, session, onto)
    merged = store.append(
        onto, [m.model_copy(update={"seq": n}) for n, m in enumerate(own, onto.count + 1)]
    )
    merged = _carry_edits(store, session, onto, merged)
    for entry in find_journal(store, session, onto):
        number = parse_message_number(entry.message) + merged.count - session.count
        moved = {"turn": onto.turn + 1, "message": f"m{number}"}
        merged = store.add_edits(merged, entry.model_copy(update=moved))
    return merged


def find_missing(store: SessionStore, one: Session, other: Session) -> list[StoredMessage]:
    """The messages of one session that another has not, wherever they stand there."""
    shared = count_shared(store.transcript_refs(one), store.transcript_refs(other))
    return select_missing(store.originals(one, shared + 1), store.originals(other, shared + 1))


def find_journal(store: SessionStore, one: Session, other: Session) -> list[JournalEntry]:
    """The edits of the document that one of two sessions has and the other has not."""
    shared = count_shared(store.log.refs(EDITS, one.edits), store.log.refs(EDITS, other.edits))
    return store.journal(one)[shared:]


def _carry_edits(store: SessionStore, one: Session, other: Session, merged: Session) -> Session:
    """The merged session with those edits of the conversation that one has and the other has not.

    The other is what comes first in it.
    """
    log, edits = store.log, store.edits(one)
    both = [log.refs(SUPERSEDED, session.superseded) for session in (one, other)]
    if fresh := edits[count_shared(*both) :]:
        numbers = map_numbers(store.originals(one), store.originals(merged))
        for edit in fresh:
            merged = supersede(store, merged, edit.renumber(numbers))
    return merged
