"""Vectors of messages and briefs: made once, wherever a message moves, and gone with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from langgraph.store.memory import InMemoryStore

from topicloom.search.centroids import compute_centroids, sum_vectors
from topicloom.search.embedder import Vectors
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.message_search import Query
from topicloom.search.vectors import StoredVectors
from topicloom.state.lifecycle import mark_archived, mark_divided
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.base import Storage
from topicloom.storage.files import FileStorage
from topicloom.storage.sessions import SessionStore
from topicloom.storage.stores import StoreStorage
from topicloom.storage.topic_changes import merge_topics
from topicloom.storage.topic_reader import TopicReader
from topicloom.topics.session_index import SessionIndex


class CountingEmbedder(HashingEmbedder):
    """Keeps what it was asked for, and counts the messages in it."""

    def __init__(self) -> None:
        super().__init__(64)
        self.texts: list[str] = []

    @property
    def made(self) -> int:
        return sum(text.startswith(("user: ", "assistant: ")) for text in self.texts)

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return super().embed(texts)


@dataclass
class Kept:
    """A session of twelve messages in one topic, reopened at will as another process would."""

    reopen: Callable[[], Storage]
    session: Session
    topic: Topic

    def store(self) -> SessionStore:
        return SessionStore(self.reopen().open("s"))

    def embedded(self) -> int:
        """How many messages a process that starts now has to embed."""
        return self.opened()[1].made

    def opened(self) -> tuple[SessionIndex, CountingEmbedder]:
        """The index that such a process makes, and what it embeds for it."""
        store, embedder = self.store(), CountingEmbedder()
        index = SessionIndex(embedder, store.log, 500)
        index.update(store.topic_table(self.session), TopicReader(store, self.session))
        return index, embedder

    def brief(self, topic: Topic, brief: str) -> Topic:
        """The topic with a brief, in the roster."""
        topic = topic.model_copy(update={"brief": brief})
        self.session = self.store().save_topics(self.session, [topic])
        return topic


def said(first: int, count: int) -> list[StoredMessage]:
    return [
        StoredMessage(
            seq=n,
            role="assistant" if n % 2 == 0 else "user",
            text=f"雨第{n}次",
            time=f"2026-03-{n:02}T09:00:00+01:00",
        )
        for n in range(first, first + count)
    ]


@pytest.fixture(params=["files", "store"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    shared = InMemoryStore()

    def reopen() -> Storage:
        files = request.param == "files"
        return FileStorage(tmp_path, fsync=False) if files else StoreStorage(shared)

    store = SessionStore(reopen().open("s"))
    messages = said(1, 12)
    session = store.append(Session(id="s"), messages)
    session, topic = store.assign(session, Topic(id="t1", name="雨"), messages)
    session = store.save_topics(session, [topic])
    kept = Kept(reopen, session, topic)
    assert kept.embedded() == 12
    assert kept.embedded() == 0
    return kept


def parts(kept: Kept) -> list[Topic]:
    """The topic divided into two."""
    store = kept.store()
    said = store.topic_messages(kept.session, kept.topic)
    one = Topic(id="t2", name="雨 (1)", parent="t1")
    session, first = store.assign(kept.session, one, said[:4])
    other = Topic(id="t3", name="雨 (2)", parent="t1")
    session, second = store.assign(session, other, said[4:])
    kept.session = store.save_topics(session, [mark_divided(kept.topic, ()), first, second])
    return [first, second]


def test_a_division_embeds_nothing(kept: Kept) -> None:
    parts(kept)
    assert kept.embedded() == 0


def test_nor_does_a_merge(kept: Kept) -> None:
    first, second = (t.model_copy(update={"parent": None}) for t in parts(kept))
    kept.session, _ = merge_topics(kept.store(), kept.session, second, first)
    assert kept.embedded() == 0


def test_nor_in_the_same_process(kept: Kept) -> None:
    store, embedder = kept.store(), CountingEmbedder()
    index = SessionIndex(embedder, store.log, 500)
    index.update(store.topic_table(kept.session), TopicReader(store, kept.session))
    parts(kept)
    index.update(store.topic_table(kept.session), TopicReader(store, kept.session))
    assert embedder.made == 0
    assert set(index.search(Query("雨第3次")).topics) == {"t2", "t3"}


def test_a_review_shares_them(kept: Kept) -> None:
    store, embedder = kept.store(), CountingEmbedder()
    topics = parts(kept)
    sums = sum_vectors(store, kept.session, embedder, topics)
    centroids = compute_centroids(sums, embedder, [])
    assert embedder.made == 0
    assert centroids.rows.shape == (2, 64)
    assert centroids.compare("t2", "t3") < 1


def test_they_are_those_of_the_messages_in_their_order(kept: Kept) -> None:
    messages = kept.store().topic_messages(kept.session, kept.topic)[::-1]
    made = HashingEmbedder(64).embed([r.line for r in messages])
    stored = StoredVectors(CountingEmbedder(), kept.store().log).of(messages)
    np.testing.assert_array_equal(stored, made.astype(np.float16).astype(np.float32))


def test_briefs_are_embedded_once_too(kept: Kept) -> None:
    _, second = parts(kept)
    kept.brief(second, "雪和雷")
    assert kept.opened()[1].texts == ["雨 (2). 雪和雷"]
    index, embedder = kept.opened()
    assert embedder.texts == []
    found = index.search(Query("雪和雷")).topics
    assert found["t3"] > found.get("t2", 0.0)
    kept.brief(second, "海和山")
    assert len(kept.opened()[1].texts) == 1


def test_a_topic_that_grows_keeps_the_vector_of_its_brief(kept: Kept) -> None:
    topic = kept.brief(kept.topic, "雪和雷")
    index, embedder = kept.opened()
    store = kept.store()
    session = store.append(kept.session, said(13, 2))
    session, topic = store.assign(session, topic, said(13, 2))
    kept.session = store.save_topics(session, [topic])
    embedder.texts.clear()
    index.update(store.topic_table(kept.session), TopicReader(store, kept.session))
    assert embedder.made == len(embedder.texts) == 2


def test_one_that_is_put_away_is_found_by_its_summary(kept: Kept) -> None:
    topic = kept.brief(kept.topic.model_copy(update={"summary": "海和山"}), "雪和雷")
    assert kept.opened()[0].search(Query("雪和雷")).topics["t1"] == 1.0
    kept.brief(mark_archived(topic, (), "2026-03"), "雪和雷")
    for _ in range(2):
        index, _ = kept.opened()
        found = [index.search(Query(q, include_archived=True)).topics for q in ("海和山", "雪和雷")]
        assert found[0]["t1"] == 1.0
        assert found[1].get("t1", 0.0) < 1.0


def test_words_of_what_it_was_a_part_of_go_too(kept: Kept) -> None:
    store = kept.store()
    held, parts = store.topic_messages(kept.session, kept.topic), list[Topic]()
    for n, name, part in ((2, "诉讼", held[:4]), (3, "花园", held[4:])):
        topic = Topic(id=f"t{n}", name=name, brief="b", parent="t1")
        kept.session, topic = store.assign(kept.session, topic, part)
        parts.append(topic)
    one, other = parts
    whole = mark_divided(kept.topic.model_copy(update={"name": "离婚"}), ())
    kept.session = store.save_topics(kept.session, [whole, one, other])
    assert kept.opened()[1].texts == ["离婚 / 诉讼. b", "离婚 / 花园. b"]
    store = kept.store()
    store.purge(store.plan_purge(kept.session, [1]))
    (text,) = [t for t in kept.opened()[1].texts if "花园" in t]
    assert "离婚" not in text


def test_a_brief_goes_with_what_it_was_made_of(kept: Kept) -> None:
    first, second = parts(kept)
    for topic, brief in ((first, "雪"), (second, "海"), (second, "山")):
        kept.brief(topic, brief)
        kept.opened()
    space = HashingEmbedder(64).fingerprint
    before = set(kept.store().log.vectors(space).load()[0])
    assert len(before) == 12 + 3
    store = kept.store()
    store.purge(store.plan_purge(kept.session, [11]))
    after = set(kept.store().log.vectors(space).load()[0])
    assert len(before - after) == 1 + 3, "m11, and all briefs: nobody knows what is in them"
    assert kept.store().topic_table(kept.session)["t3"].brief == ""


def test_what_is_purged_has_none(kept: Kept) -> None:
    parts(kept)
    store = kept.store()
    store.purge(store.plan_purge(kept.session, [3, 4]))
    keys, _ = store.log.vectors(HashingEmbedder(64).fingerprint).load()
    assert len(keys) == 10
    assert kept.embedded() == 2, "what is left of them"
