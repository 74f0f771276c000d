"""The journal of what people and reviews changed, and what undoes an entry of it."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.errors import InputError
from topicloom.memory.access import OpenSession
from topicloom.memory.values import MemoryChange
from topicloom.state.changes import (
    REVIEW,
    ChangeEntry,
    TopicChange,
    explain_refusal,
    find_undoable,
    invert_topic,
)
from topicloom.state.session import Session
from topicloom.storage.sessions import SessionStore
from topicloom.texts import FilledText, join_texts


def list_changes(opened: OpenSession) -> list[MemoryChange]:
    """The changes that people and reviews made to topics, in order."""
    journal = opened.store.changes(opened.session)
    undone = {entry.undoes for entry in journal.values()}
    return [
        MemoryChange(i, e.author, e.time, e.event, i in undone, e.undoes)
        for i, e in journal.items()
    ]


def invert_entry(
    opened: OpenSession, change_id: str, author: str
) -> tuple[MemoryChange, Sequence[TopicChange]]:
    """A change as it is once it is undone, and the changes that undo it.

    Args:
        opened: The session.
        change_id: Its id; "" for the newest change of a person that is not undone.
        author: Who undoes it.

    Raises:
        InputError: There is nothing to undo, or it does not fit what was done since.
    """
    session, store, _ = opened
    journal = store.changes(session)
    change_id = change_id or find_undoable(journal)
    if not change_id:
        raise InputError("there is nothing to undo")
    if change_id not in journal or change_id in {e.undoes for e in journal.values()}:
        raise InputError(
            "there is nothing to undo by the id {id!r}; `changes` lists them", id=change_id
        )
    entry = journal[change_id]
    inverse = _invert(store, session, entry, author, change_id)
    table = store.topic_table(session)
    why = [explain_refusal(c, table, session.active, session.tail) for c in inverse]
    if not inverse or any(why):
        reasons = join_texts(filter(None, why)) or FilledText("everything was changed since")
        raise InputError(
            "this cannot be undone, {reasons}: {change}", reasons=reasons, change=entry.event
        )
    undone = MemoryChange(change_id, entry.author, entry.time, entry.event, True, entry.undoes)
    return undone, inverse


def _invert(
    store: SessionStore, session: Session, entry: ChangeEntry, author: str, change_id: str
) -> list[TopicChange]:
    """The changes that undo another one, by the topics before it, after it, and now.

    Where a review moved messages, or anybody merged topics, the topics count as sorted by a person
    from then on: neither a split nor a review does so again.
    """
    now = store.topic_table(session)
    (before, had), (after, has) = (
        (store.topic_table(then), store.ranges(then))
        for roster, ranges in (entry.before, entry.after)
        for then in [session.model_copy(update={"roster": roster, "ranges": ranges})]
    )
    blank = TopicChange(topic="", author=author, undoes=change_id)
    merged = any(after[t.id].merged_into != t.merged_into for t in before if t.id in after)
    found = []
    for was in before:
        made = after[was.id]
        if was != made and was.id in now:
            stay = set(has.numbers(was.id))
            left = [n for n in had.numbers(was.id) if n not in stay]
            settle = (merged or entry.author == REVIEW) and was.content != made.content
            found.append(invert_topic(was, made, now[was.id], left, blank, settle=settle))
    return [change for change in found if change is not None]
