"""Which of a user's threads fit a query: told by profiles of their topics, which are kept here.

A profile is an item of the graph's store (`storage/thread_profiles.py`). It is a cache: made of
what is stored of a thread, and made anew where it is gone or something was purged.

A store's own search, by vectors alone, finds less: of 34 questions in Chinese about 19 threads it
found the thread of 26, and vectors with rare words found all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from langgraph.store.base import BaseStore

from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.reflection.store import ReflectionStore
from topicloom.search.embedder import Embedder
from topicloom.search.words import words_of
from topicloom.state.persons import Person, find_person, get_person, sees
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.storage.thread_profiles import (
    Hashes,
    ThreadProfile,
    TopicProfile,
    hash_words,
    pack_vector,
    pack_words,
    read_profile,
    read_profiles,
    write_profile,
)
from topicloom.storage.writers import catch_up, find_newest, read_tips

_THREADS = 3
"""Other threads that a turn opens at most."""
_LEAST_FIT = 0.3
"""Fit of a topic's profile from which its thread is opened: the share of the query's words that it
has, by what they tell, or the likeness of the vectors."""
_TEXT = 1_200
"""Characters of a topic by which its vector is made."""


@dataclass(frozen=True, slots=True)
class ProfiledThreads:
    """Keeps the profiles of users' threads, and chooses threads by them."""

    workspaces: Workspaces
    embedder: Embedder

    def update(self, kept: BaseStore, session: Session) -> None:
        """Bring the profile of a thread up to date, by what is stored of it now.

        If it has none though it is not new, those of all the user's threads may be gone: they are
        made anew then.
        """
        person = get_person(session)
        if person is None:
            return
        before = read_profile(kept, person, session.id)
        if before is None and session.turn > 1:
            self.remake(kept, person.user)
        else:
            self._write(kept, person, session, before)

    def remake(self, kept: BaseStore, user: str) -> int:
        """Make the profiles of all threads of a user anew; returns how many there are.

        It looks at every session of the storage, once.
        """
        storage, count = self.workspaces.choose_storage(kept), 0
        for name in storage.sessions():
            store = SessionStore(storage.open(name))
            owner = find_person(tip.session for tip in read_tips(store))
            if owner is not None and owner.user == user:
                self._write(kept, owner, catch_up(store, find_newest(store, name)), None)
                count += 1
        return count

    def _write(
        self, kept: BaseStore, person: Person, session: Session, before: ThreadProfile | None
    ) -> None:
        store = self.workspaces.open(session.id, kept).store
        same = before is not None and before.space == self.embedder.fingerprint
        known = {t.id: t for t in before.topics} if before is not None and same else {}
        table = store.topic_table(session)
        heads = {t.id: t.content for t in _list_open(table)}
        if tail := store.messages(session, session.tail):
            heads[""] = f"{session.transcript}-{session.superseded}"
        parts = {
            i: (head, store.topic_messages(session, table[i]) if i else tail)
            for i, head in heads.items()
            if i not in known or known[i].head != head
        }
        made = self._make_profiles(table, parts)
        topics = tuple(made.get(i) or known[i] for i in heads)
        profile = ThreadProfile(
            session=session.id,
            user=person.user,
            scope=person.scope,
            space=self.embedder.fingerprint,
            topics=topics,
        )
        if profile != before:
            ReflectionStore(kept).set_person(session.id, person)
            write_profile(kept, profile)

    def _make_profiles(
        self, table: TopicTable, parts: Mapping[str, tuple[str, Sequence[StoredMessage]]]
    ) -> dict[str, TopicProfile]:
        if not parts:
            return {}
        texts = []
        for topic, (_, messages) in parts.items():
            named = table[topic] if topic else None
            about = f"{named.name}\n{named.brief}\n" if named else ""
            said = "\n".join(m.text[:300] for m in messages if m.role == "user")
            texts.append(f"{about}{said[-_TEXT:]}")
        vectors = self.embedder.embed(texts)
        return {
            topic: TopicProfile(
                id=topic,
                head=head,
                words=pack_words(hash_words(w for m in messages for w in words_of(m.text))),
                vector=pack_vector(vector),
            )
            for (topic, (head, messages)), vector in zip(parts.items(), vectors, strict=True)
        }

    def choose(self, kept: BaseStore, person: Person, own: str, query: str) -> list[str]:
        """The threads with the topics that fit a query best."""
        profiles = read_profiles(kept, person, but=own)
        if stale := [profile.session for profile in profiles if profile.stale]:
            for session, _ in open_threads(self.workspaces, kept, person, stale):
                self._write(kept, person, session, None)
            profiles = read_profiles(kept, person, but=own)
        words = hash_words(words_of(query))
        topics = [
            (profile, topic, topic.read_words()) for profile in profiles for topic in profile.topics
        ]
        if not topics or not len(words):
            return []
        held: Counter[int] = Counter()
        for _, _, own_words in topics:
            held.update(np.intersect1d(words, own_words).tolist())
        weights = {w: np.log(1 + len(topics) / (1 + held[w])) for w in words.tolist()}
        (vector,) = self.embedder.embed([query])
        best = dict[str, float]()
        for profile, topic, own_words in topics:
            fit, known = _fit(words, own_words, weights), topic.read_vector()
            if profile.space == self.embedder.fingerprint and len(vector) == len(known):
                fit = max(fit, float(known @ vector) / 127)
            best[profile.session] = max(best.get(profile.session, 0.0), fit)
        ranked = sorted(best, key=lambda thread: -best[thread])
        return [thread for thread in ranked[:_THREADS] if best[thread] >= _LEAST_FIT]


def open_threads(
    workspaces: Workspaces, kept: BaseStore, person: Person, threads: Iterable[str]
) -> Iterator[tuple[Session, Workspace]]:
    """Other threads as their last turns left them, but for what may not be seen, or is gone."""
    for thread in threads:
        workspace = workspaces.open(thread, kept)
        session = find_newest(workspace.store, thread)
        owner = get_person(session)
        if owner and owner.user == person.user and sees(person.scope, owner.scope):
            yield catch_up(workspace.store, session), workspace


def _list_open(table: TopicTable) -> list[Topic]:
    return [t for t in (*table.open(), *table.loose()) if t.count]


def _fit(words: Hashes, own: Hashes, weights: Mapping[int, float]) -> float:
    shared = np.intersect1d(words, own).tolist()
    return sum(weights[w] for w in shared) / sum(weights.values())
