"""References and mergers, over a session's chains."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicloom.errors import TransitionError
from topicloom.state.references import Reference
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.files import FileStorage
from topicloom.storage.references import (
    add_references,
    merge_topics,
    read_references,
    read_topic_window,
)
from topicloom.storage.sessions import SessionStore


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
    session = session.model_copy(update={"tail": 9, "topics": 2, "home": "t1"})
    topics = [
        store.move(Topic(id="t1", name="Tea", tokens=40), group_rounds(messages(1, 2, 7, 8))),
        store.move(Topic(id="t2", name="Rain", tokens=50), group_rounds(messages(3, 4, 5, 6))),
    ]
    return store.save_topics(session, topics)


def test_a_reader_sees_what_a_topic_refers_to(store: SessionStore, session: Session) -> None:
    tea = store.topic_table(session)["t1"]
    assert read_references(store, tea) == []
    held = [Reference(first=3, last=4, home="t2"), Reference(first=9, last=10, home="t2")]
    lent = add_references(store, add_references(store, tea, held[:1]), held[1:])
    assert read_references(store, lent) == held
    assert [r.seq for r in read_topic_window(store, session, lent, count, 32)] == [
        1,
        2,
        3,
        4,
        7,
        8,
        9,
        10,
    ]
    assert [r.seq for r in read_topic_window(store, session, tea, count, 32)] == [1, 2, 7, 8]
    assert [r.seq for r in read_topic_window(store, session, lent, count, 31)] == [
        1,
        2,
        7,
        8,
        9,
        10,
    ]
    assert store.topic_messages(lent) == store.topic_messages(tea)
    assert add_references(store, add_references(store, tea, held[:1]), held[1:]) == lent, (
        "run again, nothing new"
    )


def test_merged_topics_keep_all_messages_in_order(store: SessionStore, session: Session) -> None:
    before = store.topic_table(session)
    awake = session.model_copy(update={"active": {"t2": (0.7,)}})
    merged, kept = merge_topics(store, awake, before["t1"], before["t2"])
    table = store.topic_table(merged)
    assert table["t1"] == kept
    assert [r.seq for r in store.topic_messages(kept)] == list(range(1, 9))
    assert (kept.count, kept.tokens, kept.status) == (8, 90, "open")
    assert (kept.first_at[:10], kept.last_at[:10]) == ("2026-03-01", "2026-03-08")
    gone = table["t2"]
    assert (gone.status, gone.merged_into, gone.head, gone.count) == ("merged", "t1", None, 0)
    assert merged.active == {"t1": (0.7,)}
    assert store.days(merged)["2026-03-04"] == {"t1"}
    assert merge_topics(store, awake, before["t1"], before["t2"]) == (merged, kept)


def test_what_was_before_a_merger_stays_as_it_was(store: SessionStore, session: Session) -> None:
    before = store.topic_table(session)
    merge_topics(store, session, before["t1"], before["t2"])
    assert [r.seq for r in store.topic_messages(before["t1"])] == [1, 2, 7, 8]
    assert [r.seq for r in store.topic_messages(before["t2"])] == [3, 4, 5, 6]
    assert store.topic_table(session)["t2"].status == "open"


def test_a_merged_topic_hands_its_references_on(store: SessionStore, session: Session) -> None:
    table = store.topic_table(session)
    tea = add_references(store, table["t1"], [Reference(first=3, last=4, home="t2")])
    rain = add_references(store, table["t2"], [Reference(first=9, last=10, home="t3")])
    _, kept = merge_topics(store, session, tea, rain)
    assert [r.first for r in read_references(store, kept)] == [3, 9]
    assert [r.seq for r in read_topic_window(store, session, kept, count, 40)] == list(range(1, 11))


def test_the_tail_goes_on_where_its_topic_went(store: SessionStore, session: Session) -> None:
    table = store.topic_table(session)
    merged, _ = merge_topics(store, session, table["t2"], table["t1"])
    assert merged.home == "t2"


def test_a_topic_cannot_be_merged_twice(store: SessionStore, session: Session) -> None:
    table = store.topic_table(session)
    merged, kept = merge_topics(store, session, table["t1"], table["t2"])
    gone = store.topic_table(merged)["t2"]
    for survivor, other in ((kept, gone), (gone, kept), (kept, kept)):
        with pytest.raises(TransitionError):
            merge_topics(store, merged, survivor, other)


@pytest.mark.usefixtures("session")
def test_days_are_those_of_the_messages(tmp_path: Path, store: SessionStore) -> None:
    tea = store.move(Topic(id="t3", name="Oven"), group_rounds(messages(1, 2, 7, 8)))
    days = {m.seq: m.day for m in store.topic_messages(tea)}
    assert store.topic_days(tea) == days == {n: f"2026-03-{n:02}" for n in (1, 2, 7, 8)}
    # A line that somebody changed is taken from the transcript, as for the messages.
    (written,) = (p for p in tmp_path.rglob("*.jsonl") if "t3" in p.stem)
    written.write_text(written.read_text("utf-8").replace("word 7", "word 9"), "utf-8")
    again = SessionStore(FileStorage(tmp_path, fsync=False).open("s"))
    assert again.topic_days(tea) == days
