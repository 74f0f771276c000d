"""What a session remembers, to look at: the half of `Memory` that changes nothing."""

from __future__ import annotations

from datetime import date

from langchain_core.messages import BaseMessage

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.memory.absence import Absence, explain_absence
from topicloom.memory.access import Access
from topicloom.memory.journal import list_changes
from topicloom.memory.persons import PersonMemory
from topicloom.memory.provisional import sort_unsplit
from topicloom.memory.searching import search_messages
from topicloom.memory.user_facts import read_facts
from topicloom.memory.values import (
    FoundMessage,
    MemoryChange,
    MemoryTopic,
    check_count,
    get_topic,
    read_day,
    read_number,
    show_topic,
)
from topicloom.reflection.fact_spans import FactSpan
from topicloom.reflection.facts import Fact
from topicloom.reflection.persons import see_facts
from topicloom.search.time_expressions import Days
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage


class MemoryReading:
    """Reads a session as its access finds it; see `Memory`."""

    _access: Access

    def _session(self) -> Step[Session]:
        """The session: counters, active topics, heads of chains."""
        return (yield from self._access.open()).session

    def _topics(self) -> Step[list[MemoryTopic]]:
        """The topics that hold messages, or did so before they were divided, in their order.

        Loose ends come last.
        """
        session, store, _ = yield from self._access.open()
        table = store.topic_table(session)
        held = [t for t in table if t.count or t.status == "divided"]
        return [show_topic(t, table, session, store) for t in sorted(held, key=lambda t: t.loose)]

    def _topic(self, topic_id: str) -> Step[MemoryTopic]:
        """The topic of that id; one that was merged is empty.

        Raises:
            InputError: There is none.
        """
        session, store, _ = yield from self._access.open()
        table = store.topic_table(session)
        return show_topic(get_topic(table, topic_id, session), table, session, store)

    def _provisional(self) -> Step[dict[str, list[StoredMessage]]]:
        """The messages that are in no topic yet, by the name of the topic that they would open.

        It is worked out anew at each call and without a model; "" has what would be a loose end.
        """
        return sort_unsplit((yield from self._access.open()))

    def _search(
        self,
        text: str,
        since: str | date | None = None,
        until: str | date | None = None,
        limit: int | None = 20,
    ) -> Step[list[FoundMessage]]:
        """The messages that fit a text best, archived ones and those in no topic too, best first.

        One that fits it neither in meaning nor in words is not among them, unless none fits: then
        up to three that are closest in meaning are returned, with `fits` False.

        Args:
            text: What to look for, in any words.
            since: The first day, `2026-03-02`; from the beginning if not given.
            until: The last day, likewise.
            limit: How many at most, 1 or more; None for all.

        Raises:
            InputError: A day cannot be read, or the limit is none.
        """
        limit = check_count(limit)
        days = Days(read_day(since, date.min), read_day(until, date.max))
        return search_messages((yield from self._access.open()), text, days)[:limit]

    def _quote(self, message_id: str) -> Step[StoredMessage]:
        """The message of a short id, `m42`, word for word.

        Raises:
            InputError: There is none.
        """
        session, store, _ = yield from self._access.open()
        return store.message(session, read_number(message_id, session))

    def _history(
        self, before: str | None = None, limit: int | None = 50
    ) -> Step[list[StoredMessage]]:
        """A page of the conversation, in order: the newest messages, or those before one.

        Args:
            before: Short id of the message to stop at; the page's first one asks for the next page.
            limit: How many at most, 1 or more; None for all.

        Raises:
            InputError: There is no such message, or the limit is none.
        """
        limit = check_count(limit)
        session, store, _ = yield from self._access.open()
        last = read_number(before, session) - 1 if before else session.count
        return store.messages(session, store.find_first(session, last, limit), last)

    def _receipts(self, newest: int | None = None, skipped: int = 0) -> Step[list[Receipt]]:
        """The receipts of the newest turns, or of all, in order; the `skipped` last ones not.

        Raises:
            InputError: `newest` is less than 1, or `skipped` less than 0.
        """
        newest, skipped = check_count(newest, "newest"), check_count(skipped, "skipped", 0) or 0
        session, store, _ = yield from self._access.open()
        return store.receipts(session, newest, skipped)

    def _why_not(self, turn: int, message_id: str) -> Step[Absence]:
        """The reason why a turn did not quote a message, by its receipt and by the index of now.

        Raises:
            InputError: There is no such turn or message.
        """
        return explain_absence(turn, message_id, *(yield from self._access.open()))

    def _prompt(self) -> Step[list[BaseMessage]]:
        """The prompt by which the newest turn was answered, laid out anew of what is kept of it.

        Instructions, tools and a window that were given with that turn alone are not in it.

        Raises:
            InputError: There is no graph, which knows how prompts are laid out.
        """
        return self._access.lay_out()

    def _facts(self, at: str | date | None = None) -> Step[dict[str, Fact]]:
        """The facts of the user that hold, by key, without those that rest on what was taken back.

        In a thread of a user, all that holds and that the thread may see; see `fact_spans`.

        Args:
            at: The day on which it has to hold, `2026-03-01`; now if not given. In a thread of
                nobody, what was known by then and is known today.

        Raises:
            InputError: The day cannot be read.
        """
        opened = yield from self._access.open()
        return read_facts(self._access, opened, None if at is None else read_day(at, date.max))

    def _fact_spans(self) -> Step[list[FactSpan]]:
        """All facts of the user that the thread may see, with the spans in which they hold.

        Those that began first are in front.
        """
        session, store, _ = yield from self._access.open()
        return see_facts(self._access.facts, store, session)

    def _person(self) -> Step[PersonMemory]:
        """Everything of the user that the session belongs to, over all threads and scopes.

        Raises:
            InputError: It belongs to nobody, or there is no graph, which knows the checkpoints.
        """
        session, graph = (yield from self._session()), self._access.graph
        if graph is None:
            raise InputError(
                "only a graph can find all threads of a user: use Memory.of(graph, config)"
            )
        if not session.user_id:
            raise InputError("session {session!r} belongs to no user", session=session.id)
        return PersonMemory(graph, session.user_id)

    def _changes(self) -> Step[list[MemoryChange]]:
        """The changes that people and reviews made to topics, in order."""
        return list_changes((yield from self._access.open()))

    session, asession = both(_session)
    topics, atopics = both(_topics)
    topic, atopic = both(_topic)
    provisional, aprovisional = both(_provisional)
    search, asearch = both(_search)
    quote, aquote = both(_quote)
    history, ahistory = both(_history)
    receipts, areceipts = both(_receipts)
    why_not, awhy_not = both(_why_not)
    prompt, aprompt = both(_prompt)
    facts, afacts = both(_facts)
    fact_spans, afact_spans = both(_fact_spans)
    person, aperson = both(_person)
    changes, achanges = both(_changes)
