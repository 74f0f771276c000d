"""A session that was last used with another encoder: usable at once, its vectors made anew."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from topicloom.search.embedder import Vectors
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.message_search import Query
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.files import FileStorage
from topicloom.storage.sessions import SessionStore
from topicloom.storage.topic_reader import TopicReader
from topicloom.topics.session_index import SessionIndex

MANY = 400


class HeldEmbedder(HashingEmbedder):
    """Waits with a part of many texts until it may go on; queries and briefs are few."""

    def __init__(self) -> None:
        super().__init__(96)
        self.began, self.may, self.made = Event(), Event(), 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) > 4:
            self.began.set()
            assert self.may.wait(60)
            self.made += len(texts)
        return super().embed(texts)


@dataclass
class Opened:
    """A session of many messages, opened with another encoder than it was last used with."""

    store: SessionStore
    session: Session
    embedder: HeldEmbedder
    index: SessionIndex

    def update(self) -> None:
        reader = TopicReader(self.store, self.session)
        self.index.update(self.store.topic_table(self.session), reader)

    def wait(self) -> None:
        self.embedder.may.set()
        end = time.monotonic() + 60
        while self.index.waiting and time.monotonic() < end:
            time.sleep(0.01)
        assert not self.index.waiting


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    store = SessionStore(FileStorage(tmp_path, fsync=False).open("s"))
    texts = [f"note {n}: on {('sailing', 'baking')[n % 2]}" for n in range(MANY)]
    said = enumerate(texts, 1)
    messages = [StoredMessage(seq=n, role="user", text=t, time="") for n, t in said]
    session = store.append(Session(id="s"), messages)
    session, topic = store.assign(session, Topic(id="t1", name="notes"), messages)
    session = store.save_topics(session, [topic])
    before = SessionIndex(HashingEmbedder(64), store.log, 500)
    before.update(store.topic_table(session), TopicReader(store, session))
    assert not before.waiting, "a session that is new to every encoder is embedded at once"
    embedder = HeldEmbedder()
    return Opened(store, session, embedder, SessionIndex(embedder, store.log, 500))


@pytest.mark.slow
def test_words_find_what_is_not_embedded_yet(opened: Opened) -> None:
    opened.update()
    assert opened.embedder.began.wait(60)
    assert opened.index.waiting == MANY
    assert "m18" in list(opened.index.search(Query("note 17")).weights)[:3]
    opened.wait()
    opened.update()
    keys, vectors = opened.store.log.vectors(opened.embedder.fingerprint).load()
    assert len(keys) >= MANY
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=0.01)
    made = opened.embedder.made
    again = SessionIndex(opened.embedder, opened.store.log, 500)
    reader = TopicReader(opened.store, opened.session)
    again.update(opened.store.topic_table(opened.session), reader)
    assert (again.waiting, opened.embedder.made) == (0, made)
    assert again.search(Query("note 17")).weights == opened.index.search(Query("note 17")).weights


@pytest.mark.slow
def test_what_is_purged_meanwhile_gets_no_vector(opened: Opened) -> None:
    opened.update()
    assert opened.embedder.began.wait(60)
    refs = opened.store.transcript_refs(opened.session)
    log = opened.store.log
    log.purge("transcript", refs[-40:])
    opened.wait()
    assert opened.embedder.made < MANY


class FailingEmbedder(HashingEmbedder):
    """Gives nothing while it fails."""

    failure = "down"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return super().embed(texts) * (not self.failure)


@pytest.mark.slow
def test_what_an_encoder_failed_at_is_taken_in_anew_once_it_is_back(opened: Opened) -> None:
    embedder, read = FailingEmbedder(128), list[int]()
    index = SessionIndex(embedder, opened.store.log, 500)
    table = opened.store.topic_table(opened.session)

    class Counting(TopicReader):
        def read(self, numbers: Sequence[int]) -> Sequence[StoredMessage]:
            read.append(len(numbers))
            return super().read(numbers)

    # Once more when the vectors are there, which are made in the background.
    for failure, reads in (("down", 1), ("down", 1), ("", 2), ("", 3), ("", 3)):
        embedder.failure = failure
        index.update(table, Counting(opened.store, opened.session))
        assert len(read) == reads
        while index.waiting:
            time.sleep(0.01)
