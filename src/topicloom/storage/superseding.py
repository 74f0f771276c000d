"""Taking messages out of view: out of the topics that hold them, and of what was made of them."""

from __future__ import annotations

from topicloom.state.recall import Note
from topicloom.state.safe_text import KnownText
from topicloom.state.session import Session
from topicloom.state.superseding import Edit
from topicloom.state.topics import Topic
from topicloom.storage.purged_rows import PurgedTexts
from topicloom.storage.sessions import SessionStore


def supersede(store: SessionStore, session: Session, edit: Edit) -> Session:
    """The session after an edit; all that it superseded stays in storage, and on older branches.

    The notes are written anew without it. Of the topics that have it, names, briefs and summaries
    are gone; `list_nameless` finds them.
    """
    if not edit.numbers:
        return session
    held = _find_holders(store, session, edit)
    gone = PurgedTexts(
        messages=frozenset(f"m{number}" for number in edit.numbers),
        topics=frozenset(topic.id for topic in held),
        names=frozenset(topic.name for topic in held),
        words=KnownText("\n".join(m.text for m in store.pick(session, edit.numbers).values())),
    )
    session = store.add_edit(session, edit)
    rows = [
        Topic.model_validate(gone.strip_topic(store.recount(session, t).model_dump())) for t in held
    ]
    session = store.save_topics(session, rows)
    empty = {topic.id for topic in rows if not topic.count}
    active = {t: scores for t, scores in session.active.items() if t not in empty}
    return _clean_notes(store, session.model_copy(update={"active": active}), edit, gone)


def list_nameless(store: SessionStore, session: Session) -> list[Topic]:
    """The topics that hold messages and have no brief any more."""
    return [t for t in store.topic_table(session) if t.count and not t.brief]


def _find_holders(store: SessionStore, session: Session, edit: Edit) -> list[Topic]:
    table = store.topic_table(session)
    return [table[topic] for topic in store.ranges(session).group(sorted(edit.numbers))]


def _clean_notes(store: SessionStore, session: Session, edit: Edit, gone: PurgedTexts) -> Session:
    notes = store.notes(session)
    cleaned = [
        _unquote(Note.model_validate(gone.strip_note(note.model_dump(mode="json"))), edit)
        for note in notes
        if note.after not in edit.removed
    ]
    if cleaned == notes:
        return session
    session = session.model_copy(update={"ledger": None})
    for note in cleaned:
        session = session if note.empty else store.add_note(session, note)
    return session


def _unquote(note: Note, edit: Edit) -> Note:
    """The note, without quotes of what is superseded."""
    gone = {f"m{number}" for number in edit.numbers}
    parts = [
        part.model_copy(update={"quotes": tuple(q for q in part.quotes if q not in gone)})
        for part in note.topics
    ]
    kept = tuple(part for part in parts if part.quotes)
    return note.model_copy(update={"topics": kept})
