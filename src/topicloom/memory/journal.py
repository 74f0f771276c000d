"""The journal of what people and reviews changed, and what undoes an entry of it."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.errors import InputError
from topicloom.memory.access import OpenSession
from topicloom.memory.values import MemoryChange, invert_change
from topicloom.state.changes import TopicChange, explain_refusal, find_undoable
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
    inverse = invert_change(store, session, entry, author, change_id)
    table = store.topic_table(session)
    why = [explain_refusal(c, table, session.active, session.tail) for c in inverse]
    if not inverse or any(why):
        reasons = join_texts(filter(None, why)) or FilledText("everything was changed since")
        raise InputError(
            "this cannot be undone, {reasons}: {change}", reasons=reasons, change=entry.event
        )
    undone = MemoryChange(change_id, entry.author, entry.time, entry.event, True, entry.undoes)
    return undone, inverse
