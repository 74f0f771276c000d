"""Checks of a recorded session: nothing lost, nothing twice, nothing changed."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.errors import BrokenInvariantError
from topicloom.recordings.conversations import RecordedMessage
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.sessions import SessionStore


def check_session(
    store: SessionStore, session: Session, said: Sequence[RecordedMessage] | None = None
) -> None:
    """Check that every message is in exactly one place, word for word.

    Args:
        store: The session's storage, best opened anew: nothing is then taken from memory.
        session: As its checkpoint has it.
        said: What was said, in order, where that is known from elsewhere.

    Raises:
        BrokenInvariantError: If something does not hold; it names the message.
        StorageError: If a message cannot be read.
    """
    transcript = store.records(session)
    _check_numbers(transcript, session)
    if said is not None:
        _check_verbatim(transcript, said)
    homes = _homes(store, session, transcript)
    for record in transcript[: session.tail - 1]:
        if record.seq not in homes:
            raise _broken(session, record, "is in no topic, and not in the tail either")
    for round_ in group_rounds(transcript[: session.tail - 1]):
        parts = {homes[r.seq] for r in round_.records}
        if len(parts) > 1:
            where = " and ".join(sorted(parts))
            raise _broken(session, round_.records[0], f"and its exchange are parted: {where}")


def _check_numbers(transcript: Sequence[StoredMessage], session: Session) -> None:
    for place, record in enumerate(transcript, start=1):
        if record.seq != place:
            raise _broken(session, record, f"stands in place {place}")
    if len(transcript) != session.count:
        raise BrokenInvariantError(
            f"session {session.id!r} has {len(transcript)} messages, not {session.count}"
        )


def _check_verbatim(transcript: Sequence[StoredMessage], said: Sequence[RecordedMessage]) -> None:
    for record, message in zip(transcript, said, strict=False):
        if (record.source, record.text) != (message.id, message.text):
            raise BrokenInvariantError(
                f"message {record.id} is not what was said: {record.source!r} {record.text[:60]!r}"
                f" instead of {message.id!r} {message.text[:60]!r}"
            )
    if len(transcript) != len(said):
        missing = said[len(transcript) : len(transcript) + 1]
        first = f": {missing[0].id!r} is missing" if missing else ""
        raise BrokenInvariantError(
            f"{len(said)} messages were said, {len(transcript)} are kept{first}"
        )


def _homes(
    store: SessionStore, session: Session, transcript: Sequence[StoredMessage]
) -> dict[int, str]:
    """The topic of each message that is in one, by number."""
    homes: dict[int, str] = {}
    for topic in store.topic_table(session):
        last = 0
        for record in store.topic_records(topic):
            if record.seq >= session.tail:
                raise _broken(session, record, f"is in the tail and in {topic.id}")
            if record.seq in homes:
                raise _broken(session, record, f"is in {homes[record.seq]} and in {topic.id}")
            if record != transcript[record.seq - 1]:
                raise _broken(session, record, f"reads otherwise in {topic.id}")
            if record.seq <= last:
                raise _broken(session, record, f"stands after m{last} in {topic.id}")
            homes[record.seq] = topic.id
            last = record.seq
    return homes


def _broken(session: Session, record: StoredMessage, what: str) -> BrokenInvariantError:
    return BrokenInvariantError(f"message {record.id} of session {session.id!r} {what}")
