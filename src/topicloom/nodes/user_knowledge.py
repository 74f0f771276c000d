"""What is known of a user: facts by their spans, and what other threads say word for word.

Which threads to open is told by their profiles (`profiled_threads.py`); what is quoted is read from
the threads themselves, each time that a prompt shows it. So what is purged, forgotten or archived
there is gone here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from langgraph.store.base import BaseStore

from topicloom.context.notes import show_fact
from topicloom.nodes.profiled_threads import ProfiledThreads, open_threads
from topicloom.nodes.workspace import Workspaces, enter_all
from topicloom.prompts.loader import Cues
from topicloom.reflection.fact_spans import FactSpan
from topicloom.reflection.persons import find_facts, see_facts, share_facts
from topicloom.reflection.store import ReflectionStore
from topicloom.search.embedder import Embedder
from topicloom.search.message_search import Query
from topicloom.search.time_expressions import Days, parse_when, time_in
from topicloom.search.words import words_of
from topicloom.state.facts import KnownFact
from topicloom.state.persons import get_person
from topicloom.state.recall import parse_message_number
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, parse_iso_seconds
from topicloom.state.thread_quotes import ThreadQuote
from topicloom.storage.sessions import SessionStore

_LEAST_WEIGHT = 0.8
"""Weight from which a message of another thread is quoted: it is found for sure there."""
_MESSAGES, _FACTS, _NEW_FACTS = 6, 4, 6
"""Messages of other threads in a note, facts that fit it, and facts learnt elsewhere meanwhile."""
_LEAST_FACT, _LEAST_PAST = 0.38, 0.2
"""Likeness from which a fact fits what is asked; less is enough where the past is asked for, of
which nothing is in the prompt."""
_LEAST_LIKE, _OF_BEST = 0.3, 0.6
"""Likeness from which a message fits, and the share of that of the best one."""
_TEXT = 1_200
"""Characters of a message by which it is compared."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class UserKnowledge:
    """Finds and reads what is known of a user, by what reflection and other threads have stored."""

    workspaces: Workspaces
    embedder: Embedder
    past: Cues
    """Words that speak of the past."""
    clock: Callable[[], datetime]
    sharing: Literal["off", "facts", "all"]
    """The setting `across_threads`."""

    @property
    def profiles(self) -> ProfiledThreads:
        """The threads, by what their profiles say of them."""
        return ProfiledThreads(self.workspaces, self.embedder)

    @property
    def _alone(self) -> bool:
        """True if a thread sees nothing of others."""
        return self.sharing == "off"

    def facts(
        self, kept: BaseStore, store: SessionStore, session: Session
    ) -> Mapping[str, KnownFact]:
        """The facts that hold now, by key, what was said last behind the rest."""
        now = self.clock().timestamp()
        known = find_facts(ReflectionStore(kept), store, session, now, alone=self._alone)
        said = ((key, fact) for key, fact in known.items() if not fact.held)
        ordered = sorted(said, key=lambda i: (parse_iso_seconds(i[1].at) or 0.0, i[0]))
        return {k: KnownFact(f.since[:10], show_fact(f.text, f.quote)) for k, f in ordered}

    def find_facts(
        self,
        kept: BaseStore,
        store: SessionStore,
        session: Session,
        query: str,
        shown: Sequence[ThreadQuote],
    ) -> list[ThreadQuote]:
        """The facts that a note has to say: learnt elsewhere since the prompt's were chosen, or
        asked for, and not `shown` by notes already. What ended is shown only where the past is
        asked for.
        """
        now = session.place(self.clock())
        known = {(quote.fact, quote.since) for quote in shown}
        spans = see_facts(ReflectionStore(kept), store, session, alone=self._alone)
        seconds = now.timestamp()
        holding = [s for s in spans if s.holds_at(seconds)]
        free = [
            s
            for s in spans
            if not s.held
            and (s.key, s.since) not in known
            and not (s in holding and s.key in session.facts)
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
        chosen = self.profiles.choose(kept, person, session.id, query)
        for other, workspace in open_threads(self.workspaces, kept, person, chosen):
            tail = enter_all(workspace.full_index, workspace.store, other)
            hits = workspace.full_index.search(Query(query, days, from_user=True))
            best = [m for m, weight in hits.weights.items() if weight >= _LEAST_WEIGHT][:_MESSAGES]
            said = list(workspace.store.pick(other, map(parse_message_number, best)).values())
            likeness = self._compare(query, [m.text[:_TEXT] for m in said])
            least = max(_LEAST_LIKE, _OF_BEST * max(likeness, default=0.0))
            for message, like in zip(said, likeness, strict=True):
                if like < least:
                    continue
                if (other.id, message.id) not in known and message.text != REMOVED:
                    topic = hits.owners[message.id].replace(tail, "")
                    quote = ThreadQuote(
                        thread=other.id, message=message.id, topic=topic, day=message.day
                    )
                    found.append((hits.weights[message.id], quote))
        ranked = sorted(found, key=lambda pair: -pair[0])
        return [quote for _, quote in ranked[:_MESSAGES]]

    def read(
        self, kept: BaseStore, store: SessionStore, session: Session, quotes: Sequence[ThreadQuote]
    ) -> dict[ThreadQuote, str]:
        """What quotes say now; of what is gone, or not to be seen any more, there is none."""
        person = get_person(session)
        texts = dict[ThreadQuote, str]()
        if person is None or not quotes:
            return texts
        if any(quote.fact for quote in quotes):
            seen = see_facts(ReflectionStore(kept), store, session, alone=self._alone)
            spans = {(s.key, s.since): s for s in seen}
            facts = ((q, spans.get((q.fact, q.since))) for q in quotes if q.fact)
            texts |= {quote: _describe(span) for quote, span in facts if span is not None}
        threads = dict.fromkeys(q.thread for q in quotes if q.message and not self._alone)
        for other, workspace in open_threads(self.workspaces, kept, person, threads):
            hidden = _find_hidden(workspace.store, other)
            own = {
                parse_message_number(q.message): q
                for q in quotes
                if q.message and q.thread == other.id
            }
            said = workspace.store.pick(other, (n for n in own if 0 < n <= other.count))
            texts |= {
                own[n]: m.text
                for n, m in said.items()
                if n not in hidden and m.text != REMOVED and m.day == own[n].day
            }
        return texts

    def share(self, kept: BaseStore, store: SessionStore, session: Session) -> None:
        """Have the user's other threads find what the session says now.

        Its facts are shown anew where it went back, or where words were edited.
        """
        if session.branch or session.superseded:
            share_facts(ReflectionStore(kept), store, session)
        if self.sharing == "all":
            self.profiles.update(kept, session)


def _find_hidden(store: SessionStore, session: Session) -> set[int]:
    ranges = store.ranges(session)
    return {n for t in store.topic_table(session).archived() for n in ranges.numbers(t.id)}


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
