"""What a user's other threads bring to a turn: facts by their spans, and messages word for word.

Which threads to open is told by their profiles; what is quoted is read from the threads themselves,
each time that a prompt shows it. So what is purged, forgotten or archived there is gone here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from langgraph.store.base import BaseStore

from topicloom.index.embedder import Embedder
from topicloom.index.time_expressions import Days, parse_when, time_in
from topicloom.index.words import words_of
from topicloom.nodes.workspace import Workspace, Workspaces, enter_all
from topicloom.prompts.loader import Cues
from topicloom.reflection.fact_spans import FactSpan
from topicloom.reflection.persons import see_facts
from topicloom.reflection.store import ReflectionStore
from topicloom.state.persons import Person, find_person, get_person
from topicloom.state.recall import parse_message_number
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, StoredMessage, parse_iso_seconds
from topicloom.state.thread_quotes import ThreadQuote
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
_LEAST_WORTH = 0.8
"""Worth from which a message of another thread is quoted: it is found for sure there."""
_MESSAGES, _FACTS, _NEW_FACTS = 6, 4, 6
"""Messages of other threads in a note, facts that fit it, and facts learnt elsewhere meanwhile."""
_LEAST_FACT, _LEAST_PAST = 0.38, 0.2
"""Likeness from which a fact fits what is asked; less is enough where the past is asked for, of
which nothing is in the prompt."""
_LEAST_LIKE, _OF_BEST = 0.3, 0.6
"""Likeness from which a message fits, and the share of that of the best one."""
_TEXT = 1_200
"""Characters of a topic by which its vector is made."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class OtherThreads:
    """Finds and reads what a user's other threads know."""

    workspaces: Workspaces
    embedder: Embedder
    past: Cues
    """Words that speak of the past."""

    def find_facts(
        self,
        kept: BaseStore,
        store: SessionStore,
        session: Session,
        query: str,
        shown: Sequence[ThreadQuote],
        now: datetime,
        *,
        alone: bool = False,
    ) -> list[ThreadQuote]:
        """The facts that a note has to say: learnt elsewhere since the prompt's were chosen, or
        asked for. What ended is shown only where the past is asked for.

        Args:
            kept: The graph's store.
            store: The thread's own storage.
            session: The thread.
            query: What the user says.
            shown: What notes say already.
            now: The time.
            alone: True for what the thread itself knows, nothing of others.
        """
        known = {(quote.fact, quote.since) for quote in shown}
        spans = see_facts(ReflectionStore(kept), store, session, alone=alone)
        seconds = now.timestamp()
        holding = [s for s in spans if s.holds_at(seconds)]
        free = [
            s
            for s in spans
            if (s.key, s.since) not in known and not (s in holding and s.key in session.facts)
        ]
        chosen = parse_iso_seconds(session.facts_chosen)
        since = (chosen if chosen is not None else seconds) - _DAY
        new = [
            s
            for s in free
            if s in holding and s.thread != session.id and (parse_iso_seconds(s.at) or 0.0) >= since
        ]
        asked = self._find_asked(free, holding, query, now)
        found = list(dict.fromkeys([*new[-_NEW_FACTS:], *asked]))
        return [
            ThreadQuote(thread=s.thread, fact=s.key, since=s.since, day=s.since[:10]) for s in found
        ]

    def _find_asked(
        self, spans: Sequence[FactSpan], holding: Sequence[FactSpan], query: str, now: datetime
    ) -> list[FactSpan]:
        """The spans that fit a query best: of the days it names, else of now, or of the past."""
        named = time_in(query, now)
        days = parse_when(named, now) if named else None
        least = _LEAST_PAST
        if days is not None and named is not None:
            spans = [s for s in spans if _overlaps(s, days)]
            query = query.replace(named, " ")
        elif not self.past.found_in(query):
            spans, least = [s for s in spans if s in holding], _LEAST_FACT
        likeness = self._compare(query, [s.text for s in spans])
        ranked = sorted(zip(likeness, range(len(spans)), strict=True), reverse=True)
        return [spans[place] for value, place in ranked[:_FACTS] if value >= least]

    def _compare(self, query: str, texts: Sequence[str]) -> list[float]:
        """How alike texts [n] are to a query: by vectors or by its words, whichever is more."""
        if not texts:
            return []
        asked, *others = self.embedder.embed([query, *texts])
        words = set(words_of(query))
        return [
            max(float(asked @ vector), _cover(words, text))
            for text, vector in zip(texts, others, strict=True)
        ]

    def find_messages(
        self,
        kept: BaseStore,
        session: Session,
        query: str,
        days: Days | None,
        shown: Sequence[ThreadQuote],
    ) -> list[ThreadQuote]:
        """The messages of the user's other threads that fit a query, best first.

        At most three threads are opened: those whose profiles fit best.
        """
        person = get_person(session)
        if person is None:
            return []
        known = {(quote.thread, quote.message) for quote in shown}
        found = list[tuple[float, ThreadQuote]]()
        for thread in self._choose_threads(kept, person, session.id, query):
            opened = self._open(kept, person, thread)
            if opened is None:
                continue
            other, workspace = opened
            tail = enter_all(workspace.whole, workspace.store, other)
            hits = workspace.whole.search(query, days, from_user=True)
            best = [m for m, worth in hits.weights.items() if worth >= _LEAST_WORTH][:_MESSAGES]
            said = list(workspace.store.pick(other, map(parse_message_number, best)).values())
            likeness = self._compare(query, [m.text[:_TEXT] for m in said])
            least = max(_LEAST_LIKE, _OF_BEST * max(likeness, default=0.0))
            for message, like in zip(said, likeness, strict=True):
                if like < least:
                    continue
                if (thread, message.id) not in known and message.text != REMOVED:
                    topic = hits.owners[message.id].replace(tail, "")
                    quote = ThreadQuote(
                        thread=thread, message=message.id, topic=topic, day=message.day
                    )
                    found.append((hits.weights[message.id], quote))
        ranked = sorted(found, key=lambda pair: -pair[0])
        return [quote for _, quote in ranked[:_MESSAGES]]

    def read(
        self,
        kept: BaseStore,
        store: SessionStore,
        session: Session,
        quotes: Sequence[ThreadQuote],
        *,
        alone: bool = False,
    ) -> dict[ThreadQuote, str]:
        """What quotes say now; of what is gone, or not to be seen any more, there is none."""
        person = get_person(session)
        texts = dict[ThreadQuote, str]()
        if person is None or not quotes:
            return texts
        if any(quote.fact for quote in quotes):
            seen = see_facts(ReflectionStore(kept), store, session, alone=alone)
            spans = {(s.key, s.since): s for s in seen}
            facts = ((q, spans.get((q.fact, q.since))) for q in quotes if q.fact)
            texts |= {quote: _describe(span) for quote, span in facts if span is not None}
        for thread in dict.fromkeys(q.thread for q in quotes if q.message and not alone):
            opened = self._open(kept, person, thread)
            if opened is None:
                continue
            other, workspace = opened
            hidden = _find_hidden(workspace.store, other)
            own = {
                parse_message_number(q.message): q
                for q in quotes
                if q.message and q.thread == thread
            }
            said = workspace.store.pick(other, (n for n in own if 0 < n <= other.count))
            texts |= {
                own[n]: m.text
                for n, m in said.items()
                if n not in hidden and m.text != REMOVED and m.day == own[n].day
            }
        return texts

    def update_profile(self, kept: BaseStore, session: Session) -> None:
        """Bring the profile of a thread up to date, by what is stored of it now.

        If it has none though it is not new, those of all the user's threads may be gone: they are
        made anew then.
        """
        person = get_person(session)
        if person is None:
            return
        before = read_profile(kept, person, session.id)
        if before is None and session.turn > 1:
            self.remake_profiles(kept, person.user)
        else:
            self._write(kept, person, session, before)

    def remake_profiles(self, kept: BaseStore, user: str) -> int:
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
        parts = {
            t.id: (str(t.head), store.topic_messages(t))
            for t in _list_open(table)
            if known.get(t.id, TopicProfile(id="")).head != str(t.head)
        }
        tail = store.messages(session, session.tail)
        head = f"{session.transcript}-{session.superseded}"
        if tail and known.get("", TopicProfile(id="")).head != head:
            parts[""] = head, tail
        made = self._make_profiles(table, parts)
        names = [*(t.id for t in _list_open(table)), *([""] if tail else [])]
        topics = tuple(made.get(n) or known[n] for n in names)
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

    def _choose_threads(self, kept: BaseStore, person: Person, own: str, query: str) -> list[str]:
        """The threads with the topics that fit a query best."""
        profiles = read_profiles(kept, person, but=own)
        for profile in profiles:
            if profile.stale and (opened := self._open(kept, person, profile.session)) is not None:
                self._write(kept, person, opened[0], None)
        if any(profile.stale for profile in profiles):
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
            fit = _fit(words, own_words, weights)
            if profile.space == self.embedder.fingerprint and len(vector) == len(
                topic.read_vector()
            ):
                fit = max(fit, float(topic.read_vector() @ vector) / 127)
            best[profile.session] = max(best.get(profile.session, 0.0), fit)
        ranked = sorted(best, key=lambda thread: -best[thread])
        return [thread for thread in ranked[:_THREADS] if best[thread] >= _LEAST_FIT]

    def _open(
        self, kept: BaseStore, person: Person, thread: str
    ) -> tuple[Session, Workspace] | None:
        """Another thread as its last turn left it; None if it may not be seen, or is gone."""
        workspace = self.workspaces.open(thread, kept)
        session = find_newest(workspace.store, thread)
        owner = get_person(session)
        if owner is None or owner.user != person.user or owner.scope not in ("", person.scope):
            return None
        return catch_up(workspace.store, session), workspace


def _list_open(table: TopicTable) -> list[Topic]:
    return [t for t in (*table.open(), *table.loose()) if t.head is not None]


def _find_hidden(store: SessionStore, session: Session) -> set[int]:
    """Numbers of the messages that are archived."""
    archived = store.topic_table(session).archived()
    return {m.seq for topic in archived for m in store.topic_messages(topic)}


def _overlaps(span: FactSpan, days: Days) -> bool:
    first, last = days.ends
    return span.since[:10] <= last and (not span.until or span.until[:10] > first)


def _describe(span: FactSpan) -> str:
    until = f" – {span.until[:10]}" if span.until else ""
    quote = f" “{span.quote}”" if span.quote else ""
    return f"{span.since[:10]}{until}: {span.text}{quote}"


def _cover(words: set[str], text: str) -> float:
    """Share of some words that a text has; 0 for fewer than two."""
    return len(words & set(words_of(text))) / len(words) if len(words) > 1 else 0.0


def _fit(words: Hashes, own: Hashes, weights: Mapping[int, float]) -> float:
    shared = np.intersect1d(words, own).tolist()
    return sum(weights[w] for w in shared) / sum(weights.values())
