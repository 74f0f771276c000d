"""The index of a session that lives: kept up to date it finds what one made anew finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from langgraph.store.memory import InMemoryStore

from topicloom.search.bm25 import LexicalIndex
from topicloom.search.embedder import Vectors
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.message_search import Query
from topicloom.search.time_expressions import Days
from topicloom.state.lifecycle import mark_archived, mark_divided
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore
from topicloom.storage.stores import StoreStorage
from topicloom.storage.topic_changes import merge_topics
from topicloom.storage.topic_reader import TopicReader
from topicloom.topics.session_index import SessionIndex

WORDS = "雨 茶 山 海 书 琴".split()
QUERIES = ("user: 雨", "茶和山第3次", "nothing")


class Rounded(HashingEmbedder):
    """Its vectors are what is stored of them: ranks would differ by the rest."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        return super().embed(texts).astype(np.float16).astype(np.float32)


@dataclass
class Life:
    """A session whose topics grow, divide, merge and are archived, and an index kept up to date."""

    store: SessionStore = field(
        default_factory=lambda: SessionStore(StoreStorage(InMemoryStore()).open("s"))
    )
    session: Session = field(default_factory=lambda: Session(id="s"))
    made: int = 0
    said: int = 0
    past: list[Session] = field(default_factory=list)
    index: SessionIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = self.fresh()

    def fresh(self) -> SessionIndex:
        return SessionIndex(Rounded(16), self.store.log, 60)

    def open(self, choice: int) -> Topic | None:
        topics = [t for t in self.store.topic_table(self.session).open() if t.count]
        return topics[choice % len(topics)] if topics else None

    def new(self, **more: str) -> Topic:
        self.made += 1
        name = f"{WORDS[self.made % 6]}{self.made}"
        return Topic(id=f"t{self.made}", name=name, **more)

    def messages(self, count: int) -> list[StoredMessage]:
        first = self.said + 1
        self.said += count
        return [
            StoredMessage(
                seq=n,
                role="user" if n % 2 else "assistant",
                text=f"{WORDS[(n + len(self.past)) % 6]}第{n}次",
                time=f"2026-03-{1 + n % 28:02}T09:00:00+00:00",
            )
            for n in range(first, self.said + 1)
        ]

    def grow(self, choice: int) -> None:
        topic = self.open(choice) if choice % 3 else None
        messages = self.messages(2)
        self.session = self.store.append(self.session, messages)
        self.save(self.put(topic or self.new(), messages))

    def put(self, topic: Topic, messages: Sequence[StoredMessage]) -> Topic:
        self.session, topic = self.store.assign(self.session, topic, messages)
        return topic

    def divide(self, choice: int) -> None:
        topic = self.open(choice)
        if topic is None or topic.count < 4:
            return
        rounds = group_rounds(self.store.topic_messages(self.session, topic))
        parts = [[m for r in part for m in r.messages] for part in (rounds[::2], rounds[1::2])]
        heirs = [self.put(self.new(parent=topic.id), part) for part in parts]
        self.save(mark_divided(topic, ()), *heirs)

    def merge(self, choice: int) -> None:
        one, other = self.open(choice), self.open(choice + 1)
        if one is not None and other is not None and one.id != other.id:
            self.session, _ = merge_topics(self.store, self.session, one, other)

    def archive(self, choice: int) -> None:
        topic = self.open(choice)
        if topic is not None:
            self.save(mark_archived(topic, (), "2026-03"))

    def remember(self, choice: int) -> None:
        self.past.append(self.session)

    def back(self, choice: int) -> None:
        """To an older checkpoint: what is said from there on has numbers that were given before."""
        if self.past:
            self.session = self.past[choice % len(self.past)]
            self.said = sum(t.count for t in self.store.topic_table(self.session))

    def save(self, *topics: Topic) -> None:
        self.session = self.store.save_topics(self.session, topics)

    @property
    def reader(self) -> TopicReader:
        return TopicReader(self.store, self.session)

    def check(self) -> None:
        made_anew = self.fresh()
        for index in (self.index, made_anew):
            index.update(self.store.topic_table(self.session), self.reader)
        for query in QUERIES:
            kept, anew = self.index.search(Query(query)), made_anew.search(Query(query))
            assert kept.weights == pytest.approx(anew.weights, abs=1e-4)
            assert kept.topics == pytest.approx(anew.topics, abs=1e-3)


STEPS = ("grow", "grow", "grow", "divide", "merge", "archive", "remember", "back")
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9)), max_size=14)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(steps)
def test_kept_up_to_date_it_finds_what_one_made_anew_finds(steps: list[tuple[str, int]]) -> None:
    life = Life()
    for step, choice in steps:
        getattr(life, step)(choice)
        life.check()


def prepared() -> Life:
    """Rain in t1 and tea in t2, which is archived."""
    life = Life()
    for choice in (0, 3):
        life.grow(choice)
    life.archive(1)
    life.check()
    return life


def test_what_is_archived_is_found_by_those_who_ask_for_it_only() -> None:
    index = prepared().index
    assert set(index.search(Query("茶")).topics) == {"t1"}
    assert set(index.search(Query("茶", include_archived=True)).topics) == {"t1", "t2"}


def test_what_better_ones_would_fill_the_budget_four_times_with_is_not_found() -> None:
    life = Life()
    for _ in range(60):
        life.grow(3)
    life.check()
    weights = [*life.index.search(Query("茶")).weights.values()]
    assert 8 < len(weights) < 120
    assert weights[-1] >= 0.2 * weights[0]
    looked_up = life.index.search(Query("茶", priced=False)).weights
    assert 1.5 * len(weights) < len(looked_up) < 120, "who looks for something pages through it"


def test_messages_of_the_days_asked_for_come_first() -> None:
    index = prepared().index
    day = Days(date(2026, 3, 3), date(2026, 3, 3))
    assert next(iter(index.search(Query("山 海", day)).weights)) == "m2"
    assert index.search(Query("山 海", day)).weights["m2"] == 1
    elsewhere = Days(date(2020, 1, 1), date(2020, 12, 31))
    assert index.search(Query("山 海", elsewhere)) == index.search(Query("山 海"))


def test_the_index_ties_rounds_as_if_it_were_made_anew() -> None:
    life = prepared()
    for choice in (3, 1, 1, 3):
        life.grow(choice)
    life.check()
    table = life.store.topic_table(life.session)
    rounds = group_rounds(m.model_copy(update={"seq": m.seq + 100}) for m in life.messages(6))
    found = life.index.affinities(rounds, [0.0] * len(rounds), table)
    assert set(found.topics) == {t.id for t in table if t.count}
    assert found.among == pytest.approx(found.among.T)
    fresh = life.fresh()
    assert fresh.affinities(rounds, [0.0] * len(rounds), table).topics == {}, (
        "nothing is taken in yet"
    )
    fresh.update(table, life.reader)
    again = fresh.affinities(rounds, [0.0] * len(rounds), table)
    assert again.among == pytest.approx(found.among)
    for topic, odds in found.topics.items():
        assert again.topics[topic] == pytest.approx(odds)


def test_back_at_an_older_checkpoint_only_what_changed_since_is_taken_in_anew() -> None:
    life = prepared()
    life.remember(0)
    life.grow(1)  # t1 grows
    life.grow(3)  # t3 is new
    life.check()
    life.back(0)
    life.remember(0)  # other words are said from here on
    life.grow(3)
    read: list[int] = []

    class Reading(TopicReader):
        def read(self, numbers: Sequence[int]) -> Sequence[StoredMessage]:
            read.extend(numbers)
            return super().read(numbers)

    reader = Reading(life.store, life.session)
    life.index.update(life.store.topic_table(life.session), reader)
    assert read == [5, 6]
    life.check()


@given(said=st.lists(st.sampled_from(WORDS), min_size=1, max_size=30), cut=st.integers(0, 30))
def test_words_that_were_cut_off_were_never_there(said: list[str], cut: int) -> None:
    index, shorter = LexicalIndex(), LexicalIndex()
    for number, word in enumerate(said):
        index.add("user", f"{word} {number}")
        if number < cut:
            shorter.add("user", f"{word} {number}")
    index.cut(cut)
    assert len(index) == len(shorter)
    for query in (*WORDS, "3"):
        (one, held), (other, same) = index.scores(query), shorter.scores(query)
        assert one.tolist() == other.tolist()
        assert held == same


def test_what_was_read_before_a_topic_could_not_be_is_found_later() -> None:
    life = Life()
    life.grow(0)
    life.grow(0)
    table = life.store.topic_table(life.session)

    class Failing(TopicReader):
        def refs(self, messages: Sequence[StoredMessage]) -> list[str]:
            raise OSError("cannot be read")

    with pytest.raises(OSError, match="cannot be read"):
        life.index.update(table, Failing(life.store, life.session))
    life.check()
