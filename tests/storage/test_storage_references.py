"""References and mergers, over a session's chains."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicloom import (
    FileStorage,
    Round,
    Session,
    SessionStore,
    StoredMessage,
    Topic,
    TransitionError,
)
from topicloom.storage.topic_changes import merge_topics, take_rounds
from topicloom.storage.topic_windows import read_topic_window


def count(round_: Round) -> int:
    return 4 * len(round_.messages)


def messages(*numbers: int) -> list[StoredMessage]:
    return [
        StoredMessage(
            seq=n,
            role="user" if n % 2 else "assistant",
            text=f"word {n}",
            time=f"2026-03-{n:02}T10:00:00+00:00",
        )
        for n in numbers
    ]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(FileStorage(tmp_path, fsync=False).open("s"))


@pytest.fixture
def session(store: SessionStore) -> Session:
    """Ten messages; t1 has m1, m2, m7, m8 and t2 has m3 to m6."""
    session = store.append(Session(id="s"), messages(*range(1, 11)))
    session = session.model_copy(update={"tail": 9, "topics": 2})
    tea, rain = Topic(id="t1", name="Tea", tokens=40), Topic(id="t2", name="Rain", tokens=50)
    session, tea = store.assign(session, tea, messages(1, 2, 7, 8))
    session, rain = store.assign(session, rain, messages(3, 4, 5, 6))
    return store.save_topics(session, [tea, rain])


def numbers(store: SessionStore, session: Session, topic: str) -> list[int]:
    found = store.topic_messages(session, store.topic_table(session)[topic])
    assert [m.seq for m in found] == store.ranges(session).numbers(topic)
    return [m.seq for m in found]


def test_a_reader_sees_what_a_topic_refers_to(store: SessionStore, session: Session) -> None:
    tea = store.topic_table(session)["t1"]
    lent = store.refer(store.refer(session, tea, [(3, 4)]), tea, [(9, 10)])
    assert store.ranges(session).references("t1") == ()
    assert store.ranges(lent).references("t1") == ((3, 4), (9, 10))

    def window(session: Session, room: int) -> list[int]:
        return [r.seq for r in read_topic_window(store, session, tea, count, room)]

    assert window(lent, 32) == [1, 2, 3, 4, 7, 8, 9, 10]
    assert window(session, 32) == [1, 2, 7, 8]
    assert window(lent, 31) == [1, 2, 7, 8, 9, 10]
    assert numbers(store, lent, "t1") == numbers(store, session, "t1")
    again = store.refer(store.refer(session, tea, [(3, 4)]), tea, [(9, 10)])
    assert again == lent, "run again, nothing new"


def test_merged_topics_keep_all_messages_in_order(store: SessionStore, session: Session) -> None:
    before = store.topic_table(session)
    awake = session.model_copy(update={"active": {"t2": (0.7,)}})
    merged, kept = merge_topics(store, awake, before["t1"], before["t2"])
    table = store.topic_table(merged)
    assert table["t1"] == kept
    assert numbers(store, merged, "t1") == list(range(1, 9))
    assert numbers(store, merged, "t2") == []
    assert (kept.count, kept.tokens, kept.status) == (8, 90, "open")
    assert (kept.first_at[:10], kept.last_at[:10]) == ("2026-03-01", "2026-03-08")
    gone = table["t2"]
    assert (gone.status, gone.merged_into, gone.content, gone.count) == ("merged", "t1", "", 0)
    assert merged.active == {"t1": (0.7,)}
    assert store.days(merged)["2026-03-04"] == {"t1"}
    assert merge_topics(store, awake, before["t1"], before["t2"]) == (merged, kept)


def test_what_was_before_a_merger_stays_as_it_was(store: SessionStore, session: Session) -> None:
    before = store.topic_table(session)
    merge_topics(store, session, before["t1"], before["t2"])
    assert numbers(store, session, "t1") == [1, 2, 7, 8]
    assert numbers(store, session, "t2") == [3, 4, 5, 6]
    assert store.topic_table(session)["t2"].status == "open"


def test_a_merged_topic_hands_its_references_on(store: SessionStore, session: Session) -> None:
    table = store.topic_table(session)
    tea, rain = table["t1"], table["t2"]
    session = store.refer(store.refer(session, tea, [(3, 4)]), rain, [(9, 10)])
    merged, kept = merge_topics(store, session, tea, rain)
    assert store.ranges(merged).references("t1") == ((3, 4), (9, 10))
    shown = read_topic_window(store, merged, kept, count, 40)
    assert [r.seq for r in shown] == list(range(1, 11))


def test_rounds_that_are_taken_move_whole(store: SessionStore, session: Session) -> None:
    table = store.topic_table(session)
    taken, tea = take_rounds(store, session, table["t1"], [4])
    taken = store.save_topics(taken, [tea])
    assert numbers(store, taken, "t1") == [1, 2, 3, 4, 7, 8]
    assert numbers(store, taken, "t2") == [5, 6]
    assert (tea.count, store.topic_table(taken)["t2"].count) == (6, 2)
    assert store.days(taken)["2026-03-04"] == {"t1"}
    taken, tea = take_rounds(store, taken, tea, [5, 6])
    assert store.topic_table(taken)["t2"].merged_into == "t1"
    assert numbers(store, taken, "t1") == list(range(1, 9))


def test_a_topic_cannot_be_merged_twice(store: SessionStore, session: Session) -> None:
    table = store.topic_table(session)
    merged, kept = merge_topics(store, session, table["t1"], table["t2"])
    gone = store.topic_table(merged)["t2"]
    for survivor, other in ((kept, gone), (gone, kept), (kept, kept)):
        with pytest.raises(TransitionError):
            merge_topics(store, merged, survivor, other)
