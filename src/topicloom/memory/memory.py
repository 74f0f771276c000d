"""`Memory`: what a session remembers, for people and programs to look at and to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.memory.access import Access, StorageAccess, open_access, open_facts
from topicloom.memory.expiry import Expired, end_old
from topicloom.memory.journal import invert_entry
from topicloom.memory.reading import MemoryReading
from topicloom.memory.stored import Graph
from topicloom.memory.user_facts import correct_fact, forget_fact, get_fact
from topicloom.memory.values import (
    Forgotten,
    MemoryChange,
    MemoryTopic,
    check_author,
    check_name,
    find_numbers,
    get_topic,
    read_numbers,
)
from topicloom.reflection.facts import Fact
from topicloom.reflection.scheduler import read_system_clock
from topicloom.search.embedder import Embedder
from topicloom.search.encoders import open_embedder
from topicloom.settings import Settings
from topicloom.state.changes import TopicChange, explain_refusal, find_month
from topicloom.state.persons import make_person
from topicloom.state.recall import parse_message_number
from topicloom.state.retention import RetentionPolicy
from topicloom.state.topics import Mark
from topicloom.storage.base import Storage
from topicloom.storage.sessions import SessionStore
from topicloom.telemetry.report import Telemetry, Work
from topicloom.texts import FilledText
from topicloom.topics.session_index import SessionIndex

_REACH = 2_560
"""Tokens that a search without a graph is worth as a turn's recall: 8 % of a window of 32,000."""


class Memory(MemoryReading):
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
        month = find_month(topic.last_at, session.place(self._access.clock()))
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

        Replies that no model wrote go with what they quote. Older checkpoints go too. Call it
        while no turn runs. See [Purge](../guides/storage.md#purge).

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
        lease = kept.hold_lease(thread)
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

    correct_fact, acorrect_fact = both(_correct_fact)
    forget_fact, aforget_fact = both(_forget_fact)
    rename, arename = both(_rename)
    move, amove = both(_move)
    split, asplit = both(_split)
    merge, amerge = both(_merge)
    pin, apin = both(_pin)
    archive, aarchive = both(_archive)
    restore, arestore = both(_restore)
    undo, aundo = both(_undo)
    forget, aforget = both(_forget)
    expire, aexpire = both(_expire)
    delete, adelete = both(_delete)
