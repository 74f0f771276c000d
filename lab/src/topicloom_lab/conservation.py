"""Conservation: is nothing of a session lost, there twice, or changed?"""

from __future__ import annotations

from collections.abc import Sequence

from topicloom import Session, SessionStore, StoredMessage, TopicLoomError
from topicloom.lab import group_rounds
from topicloom_app.recordings.conversations import RecordedMessage


class BrokenInvariantError(TopicLoomError):
    """A session of which a message is lost, in two places, or not what was said."""


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
    transcript = store.messages(session)
    _check_numbers(transcript, session)
    if said is not None:
        _check_verbatim(transcript, said)
    ranges = store.ranges(session)
    for stored in transcript:
        if stored.seq >= session.tail and ranges.topic_of(stored.seq):
            topic = ranges.topic_of(stored.seq)
            raise _broken(session, stored, f"is in the tail and in {topic}")
        if stored.seq < session.tail and ranges.topic_of(stored.seq) is None:
            raise _broken(session, stored, "is in no topic, and not in the tail either")
    for round_ in group_rounds(transcript[: session.tail - 1]):
        parts = {ranges.topic_of(m.seq) or "" for m in round_.messages}
        if len(parts) > 1:
            where = " and ".join(sorted(parts))
            raise _broken(session, round_.messages[0], f"and its exchange are parted: {where}")


def _check_numbers(transcript: Sequence[StoredMessage], session: Session) -> None:
    for place, stored in enumerate(transcript, start=1):
        if stored.seq != place:
            raise _broken(session, stored, f"stands in place {place}")
    if len(transcript) != session.count:
        raise BrokenInvariantError(
            f"session {session.id!r} has {len(transcript)} messages, not {session.count}"
        )


def _check_verbatim(transcript: Sequence[StoredMessage], said: Sequence[RecordedMessage]) -> None:
    for stored, message in zip(transcript, said, strict=False):
        if (stored.source, stored.text) != (message.id, message.text):
            raise BrokenInvariantError(
                f"message {stored.id} is not what was said: {stored.source!r} {stored.text[:60]!r}"
                f" instead of {message.id!r} {message.text[:60]!r}"
            )
    if len(transcript) != len(said):
        missing = said[len(transcript) : len(transcript) + 1]
        first = f": {missing[0].id!r} is missing" if missing else ""
        raise BrokenInvariantError(
            f"{len(said)} messages were said, {len(transcript)} are kept{first}"
        )


def _broken(session: Session, stored: StoredMessage, what: str) -> BrokenInvariantError:
    return BrokenInvariantError(f"message {stored.id} of session {session.id!r} {what}")
