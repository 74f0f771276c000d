"""What a replay checks at its end: each way to break it is told, with the message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from topicloom import FileStorage, Session, SessionStore, StoredMessage, Topic
from topicloom.state.stored_message import MessageRole
from topicloom_app import RecordedMessage
from topicloom_lab.conservation import BrokenInvariantError, check_session


@dataclass
class Kept:
    """Eight messages, the first six of them in two topics."""

    store: SessionStore
    session: Session
    messages: list[StoredMessage]

    def move(self, topic: str, *numbers: int) -> None:
        """Put messages into a topic, whatever it had."""
        said = [self.messages[n - 1] for n in numbers]
        session, row = self.store.assign(self.session, Topic(id=topic, name=topic), said)
        self.session = self.store.save_topics(session, [row])

    def check(self, said: list[RecordedMessage] | None = None) -> None:
        check_session(self.store, self.session, said)

    @property
    def said(self) -> list[RecordedMessage]:
        return [RecordedMessage(id=r.source, role=r.role, text=r.text) for r in self.messages]


def told(number: int) -> StoredMessage:
    role: MessageRole = "user" if number % 2 else "assistant"
    return StoredMessage(
        seq=number, role=role, text=f"说{number}", time="2026-03-02", source=f"x{number}"
    )


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    store = SessionStore(FileStorage(tmp_path, fsync=False).open("s"))
    messages = [told(n) for n in range(1, 9)]
    session = store.append(Session(id="s"), messages).model_copy(update={"tail": 7})
    kept = Kept(store, session, messages)
    kept.move("t1", 1, 2, 5, 6)
    kept.move("t2", 3, 4)
    kept.check()
    return kept


def test_a_sound_session_breaks_no_invariant(kept: Kept) -> None:
    kept.check(kept.said)


def test_a_message_in_no_topic(kept: Kept) -> None:
    kept.session = kept.session.model_copy(update={"tail": 9})
    with pytest.raises(BrokenInvariantError, match="m7 of session 's' is in no topic"):
        kept.check()


def test_a_message_in_the_tail_and_in_a_topic(kept: Kept) -> None:
    kept.move("t3", 7, 8)
    with pytest.raises(BrokenInvariantError, match=r"m7 .* is in the tail and in t3"):
        kept.check()


def test_an_exchange_that_was_parted(kept: Kept) -> None:
    kept.move("t1", 1, 2, 5)
    kept.move("t2", 3, 4, 6)
    with pytest.raises(BrokenInvariantError, match=r"m5 .* parted: t1 and t2"):
        kept.check()


def test_a_text_that_is_not_what_was_said(kept: Kept) -> None:
    said = kept.said
    said[2] = said[2].model_copy(update={"text": "something else"})
    with pytest.raises(BrokenInvariantError, match="m3 is not what was said: 'x3'"):
        kept.check(said)


def test_a_message_too_few(kept: Kept) -> None:
    more = [*kept.said, RecordedMessage(id="x9", role="user", text="lost")]
    with pytest.raises(BrokenInvariantError, match="'x9' is missing"):
        kept.check(more)
    with pytest.raises(BrokenInvariantError, match="7 messages were said, 8 are kept"):
        kept.check(kept.said[:7])


def test_a_count_that_is_wrong(kept: Kept) -> None:
    kept.session = kept.session.model_copy(update={"count": 9})
    with pytest.raises(BrokenInvariantError, match="8 messages, not 9"):
        kept.check()
