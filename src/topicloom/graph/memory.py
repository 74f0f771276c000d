"""`Memory`: what a session remembers, for people and programs to look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import islice

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from pydantic import BaseModel, PrivateAttr

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.graph.memory_access import Access, GraphAccess, StorageAccess
from topicloom.graph.session import CompiledSessionGraph
from topicloom.graph.stored import Graph
from topicloom.index.embedder import Embedder
from topicloom.index.encoders import open_embedder
from topicloom.index.session_index import SessionIndex
from topicloom.index.time_expressions import Days
from topicloom.reflection.facts import Fact
from topicloom.reflection.store import ReflectionStore
from topicloom.state.hierarchy import build_full_name
from topicloom.state.lifecycle import TopicState, get_state
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.base import TRANSCRIPT, Storage
from topicloom.storage.sessions import SessionStore

_REACH = 2_560
"""Tokens that a search without a graph is worth as a turn's recall: 8 % of a window of 32,000."""


class MemoryTopic(BaseModel, frozen=True):
    """One topic of a session, as it was when it was asked for."""

    id: str
    """Short id, `t7`."""
    name: str
    full_name: str
    """Its name behind those of the topics that it is a part of: `House / Kitchen`."""
    state: TopicState
    brief: str
    """What it is recognised by, about 1 KB."""
    summary: str
    """What a review made of it; "" before the first."""
    count: int
    """Messages in it."""
    first_at: str
    """Time of its oldest message, ISO 8601; "" if it has none."""
    last_at: str
    """Time of its newest message, likewise."""
    parent: str | None
    """The topic that it is a part of."""
    importance: float | None
    """0 to 1, by the last review; None before the first."""
    _kept: tuple[SessionStore, Topic] = PrivateAttr()

    def _messages(self) -> Step[list[StoredMessage]]:
        """Its messages in order, word for word."""
        yield from ()
        store, topic = self._kept
        return store.topic_messages(topic)

    messages, amessages = both(_messages)


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that a search found."""

    message: StoredMessage
    topic: str
    """Id of the topic that has it; "" if none has it yet."""
    relevance: float
    """0 to 1, by its place among what was found."""


class Memory:
    """What a session remembers. Each method has a form for the event loop: `asearch`.

    It reads what is there when it is asked: behind what other writers did since the newest
    checkpoint, or at the checkpoint that the configuration names.

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
    ) -> None:
        """A session by its storage alone, as the turn that ended last left it.

        Args:
            storage: Where its topics live.
            thread_id: The thread.
            store: Where reflection keeps facts.
            embedder: What its messages are searched with, as `build_session_graph` has it.
        """
        kept = SessionStore(storage.open(thread_id))
        whole = SessionIndex(open_embedder(embedder), kept.log, _REACH)
        self._access: Access = StorageAccess(thread_id, kept, whole, store)

    @classmethod
    def of(cls, graph: Graph, config: RunnableConfig) -> Memory:
        """A session by the graph that it talks with.

        Args:
            graph: The compiled session graph.
            config: Names the thread, and a checkpoint if an older one is meant.

        Raises:
            InputError: The graph is no session graph.
        """
        if not isinstance(graph, CompiledSessionGraph):
            raise InputError("this is no session graph: Memory(storage, thread_id) needs none")
        memory = cls.__new__(cls)
        memory._access = GraphAccess(graph, config)
        return memory

    def _session(self) -> Step[Session]:
        """The session: counters, active topics, heads of chains."""
        return (yield from self._access.open()).session

    def _topics(self) -> Step[list[MemoryTopic]]:
        """The topics that hold messages, or did so before they were divided, in their order."""
        session, store, _ = yield from self._access.open()
        table = store.topic_table(session)
        return [_show(t, table, session, store) for t in table if t.count or t.status == "divided"]

    def _topic(self, topic_id: str) -> Step[MemoryTopic]:
        """The topic of that id; one that was merged is empty.

        Raises:
            InputError: There is none.
        """
        session, store, _ = yield from self._access.open()
        table = store.topic_table(session)
        return _show(get_topic(table, topic_id, session), table, session, store)

    def _search(
        self,
        text: str,
        since: str | date | None = None,
        until: str | date | None = None,
        limit: int = 20,
    ) -> Step[list[FoundMessage]]:
        """The messages that fit a text best, archived ones and those in no topic too, best first.

        Args:
            text: What to look for, in any words.
            since: The first day, `2026-03-02`; from the beginning if not given.
            until: The last day, likewise.
            limit: How many at most.

        Raises:
            InputError: A day cannot be read.
        """
        session, store, whole = yield from self._access.open()
        days = Days(_read_day(since, date.min), _read_day(until, date.max))
        asked = None if since is until is None else days
        tail = _enter(whole, store, session)
        hits = whole.search(text, asked, include_archived=True)
        numbers = {int(i[1:]): weight for i, weight in hits.weights.items()}
        said = store.pick(session, numbers)
        found = [
            FoundMessage(said[n], hits.homes[f"m{n}"].replace(tail, ""), round(weight, 4))
            for n, weight in numbers.items()
            if n in said and said[n].day in days
        ]
        return found[:limit]

    def _quote(self, message_id: str) -> Step[StoredMessage]:
        """The message of a short id, `m42`, word for word.

        Raises:
            InputError: There is none.
        """
        session, store, _ = yield from self._access.open()
        return store.message(session, _read_number(message_id, session))

    def _history(self, before: str | None = None, limit: int = 50) -> Step[list[StoredMessage]]:
        """A page of the conversation, in order: the newest messages, or those before one.

        Args:
            before: Short id of the message to stop at; the page's first one asks for the next page.
            limit: How many at most.

        Raises:
            InputError: There is no such message.
        """
        session, store, _ = yield from self._access.open()
        last = _read_number(before, session) - 1 if before else session.count
        shown = store.superseded(session)
        numbers = (n for n in range(last, 0, -1) if n not in shown or shown[n] is not None)
        first = min(islice(numbers, limit), default=last + 1)
        return store.messages(session, first, last)

    def _receipts(self, newest: int | None = None) -> Step[list[Receipt]]:
        """The receipts of the newest turns, or of all, in order."""
        session, store, _ = yield from self._access.open()
        return store.receipts(session, newest)

    def _facts(self) -> Step[dict[str, Fact]]:
        """What reflection keeps of the user, by key; nothing that rests on what was taken back."""
        session, store, _ = yield from self._access.open()
        if self._access.facts is None:
            return {}
        gone = {f"m{number}" for number in store.superseded(session)}
        known = ReflectionStore(self._access.facts).facts(self._access.thread)
        return {key: fact for key, fact in known.items() if gone.isdisjoint(fact.messages)}

    session, asession = both(_session)
    topics, atopics = both(_topics)
    topic, atopic = both(_topic)
    search, asearch = both(_search)
    quote, aquote = both(_quote)
    history, ahistory = both(_history)
    receipts, areceipts = both(_receipts)
    facts, afacts = both(_facts)


def _show(topic: Topic, table: TopicTable, session: Session, store: SessionStore) -> MemoryTopic:
    shown = MemoryTopic(
        **topic.model_dump(include=set(MemoryTopic.model_fields)),
        full_name=build_full_name(topic, table.topics),
        state=get_state(topic, session.active),
    )
    shown._kept = store, topic
    return shown


class _Tail(Topic):
    """The messages that are in no topic yet, as an index takes them: for a topic of its own."""

    @property
    def chain(self) -> str:
        return TRANSCRIPT


def _enter(index: SessionIndex, store: SessionStore, session: Session) -> str:
    """Bring an index of all messages up to date; returns the id of those in no topic."""
    said = store.messages(session, session.tail)
    head = session.transcript if said else None
    # Edits make it another one, so that no words are found that are said no more.
    tail = _Tail(id=f"tail-{session.superseded}", name="", head=head)
    table = TopicTable({**store.topic_table(session).topics, tail.id: tail})
    index.update(table, lambda t, n: said[n:] if t is tail else store.topic_messages(t, n))
    return tail.id


def get_topic(table: TopicTable, topic_id: str, session: Session) -> Topic:
    """The topic of that id, or InputError."""
    topic = table.get(topic_id)
    if topic is None:
        known = f"t1 to t{session.topics}" if session.topics else "none yet"
        raise InputError(f"session {session.id!r} has no topic {topic_id!r} (there: {known})")
    return topic


def _read_number(message_id: str, session: Session) -> int:
    number = int(message_id[1:]) if message_id[:1] == "m" and message_id[1:].isdecimal() else 0
    if not 1 <= number <= session.count:
        known = f"m1 to m{session.count}" if session.count else "none yet"
        raise InputError(f"session {session.id!r} has no message {message_id!r} (there: {known})")
    return number


def _read_day(day: str | date | None, otherwise: date) -> date:
    try:
        return date.fromisoformat(str(day)[:10]) if day else otherwise
    except ValueError as error:
        raise InputError(f"{day!r} is no day: write it as 2026-03-02") from error
