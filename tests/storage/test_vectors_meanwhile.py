"""What is removed while it is embedded gets no vector, and a session that is deleted stays so."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import Event, current_thread, main_thread

import pytest

from topicloom import Session, SessionStore, Storage, StoredMessage, Topic
from topicloom.hosting import to_row
from topicloom.search.embedder import Vectors
from topicloom.search.hashing import HashingEmbedder
from topicloom.storage.chain import link
from topicloom.storage.topic_reader import TopicReader
from topicloom.topics.session_index import SessionIndex

Reopen = Callable[[], Storage]
FEW, MANY = 12, 300
"""Messages that are embedded while the turn waits, and in the background."""


class Meanwhile(HashingEmbedder):
    """Something is done while it embeds messages for the first time."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__(96)
        self.act: Callable[[], object] | None = act
        self.updated = Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > 1 and self.act:
            act, self.act = self.act, None
            assert current_thread() is main_thread() or self.updated.wait(60)
            act()
        return super().embed(texts)


def begin(storage: Storage, count: int) -> tuple[Session, list[StoredMessage]]:
    """A session of messages in a topic with a brief, last used with another encoder."""
    store = SessionStore(storage.open("s"))
    messages = [
        StoredMessage(seq=n, role="user", text=f"雨第{n}次", time="2026-03-02T09:00:00+01:00")
        for n in range(1, count + 1)
    ]
    session = store.append(Session(id="s"), messages)
    session, topic = store.assign(session, Topic(id="t1", name="雨", brief="雪"), messages)
    session = store.save_topics(session, [topic])
    SessionIndex(HashingEmbedder(64), store.log, 500).update(
        store.topic_table(session), TopicReader(store, session)
    )
    return session, messages


def embed(storage: Storage, session: Session, embedder: HashingEmbedder) -> None:
    """Bring an index up to date twice, each time until the background is done."""
    store = SessionStore(storage.open("s"))
    table, index = store.topic_table(session), SessionIndex(embedder, store.log, 500)
    known: dict[int, StoredMessage] = {}

    class Remembering(TopicReader):
        """Reads messages as they were said, purged or not, as one does who has them in memory."""

        def read(self, numbers: Sequence[int]) -> list[StoredMessage]:
            found = store.pick(session, numbers)
            known.update((seq, m) for seq, m in found.items() if seq not in known)
            return [known[number] for number in numbers]

    for _ in range(2):
        index.update(table, Remembering(store, session))
        if isinstance(embedder, Meanwhile):
            embedder.updated.set()
        settle(index)


def settle(index: SessionIndex) -> None:
    end = time.monotonic() + 60
    while index.waiting and time.monotonic() < end:
        time.sleep(0.01)
    assert not index.waiting


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("count", [FEW, MANY])
def test_what_is_purged_meanwhile(reopen: Reopen, count: int, *, elsewhere: bool) -> None:
    storage = reopen()
    session, messages = begin(storage, count)

    def purge() -> None:
        store = SessionStore((reopen() if elsewhere else storage).open("s"))
        store.purge(store.plan_purge(session, [3]))

    embedder = Meanwhile(purge)
    embed(storage, session, embedder)
    keys = set(storage.open("s").vectors(embedder.fingerprint).load()[0])
    assert {link(None, to_row(m)) for m in messages if m.seq != 3} <= keys
    assert link(None, to_row(messages[2])) not in keys


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_session_that_is_deleted_meanwhile(
    reopen: Reopen, count: int, *, elsewhere: bool
) -> None:
    storage = reopen()
    session, _ = begin(storage, count)
    embedder = Meanwhile(lambda: (reopen() if elsewhere else storage).delete("s"))
    store = SessionStore(storage.open("s"))
    table, index = store.topic_table(session), SessionIndex(embedder, store.log, 500)
    index.update(table, TopicReader(store, session))
    embedder.updated.set()
    settle(index)
    assert embedder.act is None
    assert reopen().sessions() == []
    assert reopen().open("s").vectors(embedder.fingerprint).load()[0] == []
