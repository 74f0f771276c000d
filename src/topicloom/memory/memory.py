"""`Memory`: what a session remembers, for people and programs to look at and to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from functools import partial
from time import time
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.memory.absence import Absence, explain_absence
from topicloom.memory.access import Access, StorageAccess, open_access, open_facts
from topicloom.memory.expiry import Expired, end_old
from topicloom.memory.journal import invert_entry, list_changes
from topicloom.memory.persons import PersonMemory
from topicloom.memory.provisional import sort_unsplit
from topicloom.memory.searching import search_messages
from topicloom.memory.stored import Graph
from topicloom.memory.user_facts import (
    correct_fact,
    forget_fact,
    get_fact,
    read_facts,
)
from topicloom.memory.values import (
    Forgotten,
    FoundMessage,
    MemoryChange,
    MemoryTopic,
    check_author,
    check_count,
    check_name,
    find_numbers,
    get_topic,
    read_day,
    read_number,
    read_numbers,
    show_topic,
)
from topicloom.reflection.due import ReflectionPolicy
from topicloom.reflection.fact_spans import FactSpan
from topicloom.reflection.facts import Fact
from topicloom.reflection.persons import see_facts
from topicloom.reflection.scheduler import read_system_clock
from topicloom.search.embedder import Embedder
from topicloom.search.encoders import open_embedder
from topicloom.search.time_expressions import Days
from topicloom.settings import Settings
from topicloom.state.changes import TopicChange, explain_refusal, find_month
from topicloom.state.persons import make_person
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Receipt
from topicloom.state.retention import RetentionPolicy
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Mark
from topicloom.state.zones import place_in_zone
from topicloom.storage.base import Storage
from topicloom.storage.sessions import SessionStore
from topicloom.telemetry.report import Telemetry, Work
from topicloom.texts import FilledText
from topicloom.topics.session_index import SessionIndex

_REACH = 2_560
"""Tokens that a search without a graph is worth as a turn's recall: 8 % of a window of 32,000."""


class Memory:
    """What a session remembers. Each method has a form for the event loop: `asearch`.

    Each call reads the session anew: its newest checkpoint with what other writers did since, or
    the checkpoint that the configuration names. Each change is a turn of the session without a
    message. It has a receipt, and an entry of the journal that can be undone.

        memory = Memory.of(graph, {"configurable": {"thread_id": "yue"}})
        memory.search("boiler", since="2026-03-01")[0].message.text
    """

    def __init__(
        self,
        storage: Storage,
        thread_id: str,
        *,
        store: BaseStore | None = None,
        embedder: Embeddings | Embedder | str | None = None,
        author: str = "user",
        clock: Callable[[], datetime] | None = None,
        user_id: str = "",
        scope: str = "",
    ) -> None:
        """A session by its storage alone, as the turn that ended last left it.

        Args:
            storage: Where its topics live.
            thread_id: The thread.
            store: Where reflection keeps facts.
            embedder: What its messages are searched with, as `build_session_graph` has it.
            author: Who changes it, for the journal.
            clock: Tells the time, with its zone; the system's if not given.
            user_id: Who asks for it: a session of another user is refused. Not checked if "".
            scope: The scope that it has to be in, likewise.
        """
        self.author = check_author(author)
        kept = SessionStore(storage.open(thread_id))
        full_index = SessionIndex(open_embedder(embedder), kept.log, _REACH)
        self._access: Access = StorageAccess(
            thread_id,
            kept,
            full_index,
            open_facts(store),
            clock or read_system_clock,
            Telemetry(Settings().telemetry, {}),
            person=make_person(user_id, scope),
        )

    @classmethod
    def of(cls, graph: Graph, config: RunnableConfig, *, author: str = "user") -> Memory:
        """A session by the graph that it talks with.

        Args:
            graph: The compiled session graph, or an agent with `TopicMiddleware`.
            config: Names the thread, and a checkpoint if an older one is meant: what is changed
                there begins a branch, which the memory shows from then on. An agent's memory is
                shown as it is now.
            author: Who changes it, for the journal.

        Raises:
            InputError: The graph is neither, or an agent is to be shown at a checkpoint.
        """
        memory = cls.__new__(cls)
        memory.author, memory._access = check_author(author), open_access(graph, config)
        return memory

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

    def _correct_fact(self, key: str, text: str = "") -> Step[Fact]:
        """Say a fact of the user in other words, or as it is to confirm it; returns it.

        From then on nothing but what is said later takes its place.

        Raises:
            InputError: There is no such fact.
            SessionBusyError: It is being reflected upon.
        """
        opened = yield from self._access.open()
        with self._watch("update_memory"):
            corrected = correct_fact(self._access, opened, key, text)
        return get_fact(self._access, (yield from self._access.open()), corrected)

    def _forget_fact(self, key: str) -> Step[Fact]:
        """Remove a fact for good, though not what it rests on; returns it.

        Raises:
            InputError: There is no such fact.
            SessionBusyError: It is being reflected upon.
        """
        opened = yield from self._access.open()
        with self._watch("delete_memory"):
            return (yield from forget_fact(self._access, opened, key))

    def _rename(self, topic_id: str, name: str) -> Step[MemoryTopic]:
        """Give a topic a name, which no review and no split changes.

        Raises:
            InputError: There is no such topic, the name is empty, or another topic has it.
        """
        return self._change(topic_id, name=check_name(name), marks={"named": True})

    def _move(self, messages: str | Iterable[str], topic_id: str) -> Step[MemoryTopic]:
        """Move messages into a topic, with their whole rounds, from wherever they are.

        A topic that has nothing left counts as merged into it.

        Args:
            messages: Short ids and ranges: `"m12"`, `"m12-m15, m20"`, `["m12", "m20"]`.
            topic_id: The topic that they go to.

        Raises:
            InputError: There is no such topic or message, or one is in no topic yet.
        """
        takes = read_numbers((yield from self._session()), messages)
        return (yield from self._change(topic_id, takes=takes, marks={"sorted": True}))

    def _split(self, topic_id: str, messages: str | Iterable[str], name: str) -> Step[MemoryTopic]:
        """Make a new topic of messages of another, with their whole rounds.

        Raises:
            InputError: As of `move` and `rename`, or a message is not in the topic.
        """
        session, store, _ = yield from self._access.open()
        topic = get_topic(store.topic_table(session), topic_id, session)
        takes = read_numbers(session, messages)
        if others := set(takes) - set(store.ranges(session).numbers(topic.id)):
            raise InputError("m{number} is not in {topic}", number=min(others), topic=topic_id)
        marks: dict[Mark, bool] = {"named": True, "sorted": True}
        return (yield from self._change("", name=check_name(name), takes=takes, marks=marks))

    def _merge(self, topic_id: str, into: str) -> Step[MemoryTopic]:
        """Merge a topic into another, which keeps its name.

        No review and no split takes it apart again.

        Raises:
            InputError: There is no such topic, or one cannot be merged.
        """
        return self._change(into, absorbs=topic_id, marks={"sorted": True})

    def _pin(self, topic_id: str, pinned: bool = True) -> Step[MemoryTopic]:
        """Keep a topic active from now on, so that it is read for every reply; or no longer.

        No review archives it or merges it into another.

        Raises:
            InputError: There is no such topic, or it is not open.
        """
        return self._change(topic_id, marks={"pinned": pinned})

    def _archive(self, topic_id: str) -> Step[MemoryTopic]:
        """Put a topic away: nothing but asking for what is archived finds it.

        Raises:
            InputError: There is no such topic, or it is not open.
        """
        session, store, _ = yield from self._access.open()
        topic = get_topic(store.topic_table(session), topic_id, session)
        month = find_month(topic.last_at, place_in_zone(self._access.clock(), session.zone))
        marks: dict[Mark, bool] = {"pinned": False, "restored": False}
        return (yield from self._change(topic_id, archive=month, marks=marks))

    def _restore(self, topic_id: str) -> Step[MemoryTopic]:
        """Take a topic out of the archive; no review puts it back.

        Raises:
            InputError: There is no such topic, or it is not archived.
        """
        topic = yield from self._topic(topic_id)
        if topic.state != "archived":
            raise InputError(
                "{topic} is {state}, not archived", topic=topic_id, state=FilledText(topic.state)
            )
        return (yield from self._change(topic_id, restore=True, marks={"restored": True}))

    def _change(self, topic_id: str, **change: Any) -> Step[MemoryTopic]:
        """Make one change, and return the topic as it is then."""
        session, store, _ = yield from self._access.open()
        table = store.topic_table(session)
        for named in filter(None, (topic_id, change.get("absorbs"))):
            get_topic(table, named, session)
        wanted = TopicChange(topic=topic_id, author=self.author, **change)
        if why := explain_refusal(wanted, table, session.active, session.tail):
            raise InputError(why)
        (changed,) = yield from self._make([wanted])
        return (yield from self._topic(changed))

    def _make(self, changes: Sequence[TopicChange]) -> Step[tuple[str, ...]]:
        """Make changes by a turn; returns the topics that were changed."""
        with self._watch("update_memory") as work:
            turn = yield from self._access.change(changes)
            self._access = self._access.after_change()
            if turn.refused:
                raise InputError("; ".join(turn.refused.values()))
            work.attributes["topicloom.memory.topics"] = turn.changed
        return turn.changed[-len(changes) :]

    def _watch(self, operation: str) -> AbstractContextManager[Work]:
        """Tell of a change, when it is made."""
        told = {"topicloom.memory.author": self.author}
        return self._access.telemetry.watch_memory(operation, self._access.thread, **told)

    def _changes(self) -> Step[list[MemoryChange]]:
        """The changes that people and reviews made to topics, in order."""
        return list_changes((yield from self._access.open()))

    def _undo(self, change_id: str = "") -> Step[MemoryChange]:
        """Undo a change, as far as nothing newer changed the same; returns which.

        Args:
            change_id: By `changes`, of a review too; the newest change of a person that is not
                undone, if not given.

        Raises:
            InputError: There is nothing to undo, or it does not fit what was done since.
        """
        opened = yield from self._access.open()
        undone, inverse = invert_entry(opened, change_id, self.author)
        yield from self._make(inverse)
        return undone

    def _forget(self, *what: str, dry_run: bool = False) -> Step[Forgotten]:
        """Remove messages for good, with what was made of them, and facts that rest on them.

        Older checkpoints go too. Call it while no turn runs. See
        [Purge](../guides/storage.md#purge).

        Args:
            what: Topics (all of their messages), messages and ranges: `"t3", "m12-m15"`.
            dry_run: True to remove nothing, and only say what would go.

        Raises:
            InputError: There is no such topic or message, or a turn is not finished.
            SessionBusyError: It is being reflected upon.
        """
        session, store, _ = yield from self._access.open()
        numbers = find_numbers(session, store, what)
        plan = store.plan_purge(session, numbers)
        asked = [f"m{number}" for number in numbers]
        kept, thread = self._access.facts, self._access.thread
        facts = kept.find_resting_on(thread, asked)
        said = [
            store.originals(session, number, number)[0]
            for number in map(parse_message_number, plan.messages)
        ]
        gone = (*said, *plan.versions)
        if dry_run:
            return Forgotten(gone, plan.topics, facts)
        lease = kept.hold_lease(thread, time(), ReflectionPolicy())
        with self._watch("delete_memory") as work, lease:
            work.attributes["gen_ai.memory.record.count"] = len(gone)
            forget = partial(kept.forget, thread, asked)
            left = yield from self._access.purge(plan, forget)
        self._access = self._access.after_change()
        return Forgotten(gone, plan.topics, facts, left)

    def _expire(
        self, policy: RetentionPolicy | None = None, *, dry_run: bool = False
    ) -> Step[Expired]:
        """End what is too old: messages, with all that was made of them, receipts and facts.

        It is gone as by `forget`. Call it while no turn runs. See
        [Retention](../guides/retention.md).

        Args:
            policy: How many days what is kept; by the settings of the graph if not given.
            dry_run: True to remove nothing, and only say what would go.

        Raises:
            InputError: Nothing ever ends, or a turn is not finished.
            SessionBusyError: It is being reflected upon.
        """
        ended = yield from end_old(self._access, policy, dry_run=dry_run)
        if not dry_run:
            self._access = self._access.after_change()
        return ended

    def _delete(self) -> Step[None]:
        """Delete the session for good: what is stored of it, its facts, and its thread.

        By its storage alone, checkpoints stay.
        """
        return self._access.delete()

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
    correct_fact, acorrect_fact = both(_correct_fact)
    forget_fact, aforget_fact = both(_forget_fact)
    rename, arename = both(_rename)
    move, amove = both(_move)
    split, asplit = both(_split)
    merge, amerge = both(_merge)
    pin, apin = both(_pin)
    archive, aarchive = both(_archive)
    restore, arestore = both(_restore)
    changes, achanges = both(_changes)
    undo, aundo = both(_undo)
    forget, aforget = both(_forget)
    expire, aexpire = both(_expire)
    delete, adelete = both(_delete)
