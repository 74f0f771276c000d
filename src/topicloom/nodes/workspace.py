"""The storage and the index of a session in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, RLock
from typing import TYPE_CHECKING
from weakref import ref

from cachetools import LRUCache
from langchain_core.messages import AnyMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from topicloom.context.layout import Layout
from topicloom.context.transcript import date_messages
from topicloom.errors import StorageUnavailableError
from topicloom.roles.briefing import LateBriefs
from topicloom.search.message_search import Hits, Query
from topicloom.search.time_expressions import Days
from topicloom.search.turn_topics import TurnContext
from topicloom.state.identity import align_ids, find_edit, select_unstored
from topicloom.state.language import Language
from topicloom.state.rounds import LOOK_BACK
from topicloom.state.session import Lookup, Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.superseding import NO_EDIT, Edit, OnEdit, find_shown
from topicloom.state.topic_ranges import TopicRanges
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.base import Storage
from topicloom.storage.log import SessionLog
from topicloom.storage.protection import find_inner, protect_storage
from topicloom.storage.sessions import SessionStore
from topicloom.storage.stores import StoreStorage
from topicloom.storage.topic_reader import TopicReader
from topicloom.topics.session_index import SessionIndex

if TYPE_CHECKING:
    from topicloom.storage.encryption import EncryptionKeys


class TranscriptSizes:
    """Sizes of messages in the main prompt; one that is still in view is not counted again."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._layout: tuple[Layout, Language] | None = None
        self._known: dict[int, tuple[ref[StoredMessage], int]] = {}
        self._mutex = Lock()

    def between(self, session: Session, first: int, last: int, layout: Layout) -> list[int]:
        """Tokens of each of the messages `first` to `last`, both included, in a prompt of them.

        A message with which a day begins has the line of that day; one that is out of view has 0.
        """
        shown, language = self._store.messages(session, first, last), session.language
        sizes = [0] * max(0, last - first + 1)
        with self._mutex:  # copied threads share a session, and each has a run of its own
            before = self._known if self._layout == (layout, language) else {}
            self._layout, self._known = (layout, language), {}
            for message, day in zip(shown, date_messages(shown, language), strict=True):
                known = before.get(message.seq)
                if known is None or known[0]() is not message:
                    known = ref(message), layout.count_tokens(message, language)
                self._known[message.seq] = known
                line = layout.counter.text(f"{day}\n") if day else 0
                sizes[message.seq - first] = line + known[1]
        return sizes


@dataclass(frozen=True, slots=True)
class Workspace:
    """One session's storage, and caches over what is stored: indexes and sizes."""

    store: SessionStore
    index: SessionIndex
    sizes: TranscriptSizes
    full_index: SessionIndex
    """The index of all messages, those in no topic too; empty until it is searched."""
    unread: dict[str, None] = field(default_factory=dict)
    """Why the graph's store could not be read in this turn."""
    late_briefs: LateBriefs = field(default_factory=dict)
    """Briefs that models wrote after a split had waited for them, until a turn ends."""

    def recent(
        self, session: Session, messages: Sequence[AnyMessage], missed: int = 0, first: int = 0
    ) -> list[StoredMessage]:
        """The newest messages: those the channel missed, as many as it holds, and some more.

        Starts at message number `first` if that is further back, and goes on backwards as long as
        the channel holds any: a graph around this one sends all that it did not remove.
        """
        held = missed + max(LOOK_BACK, len(messages))
        begin = self.store.find_first(session, session.count, held)
        found = self.store.messages(session, min(begin, first or begin))
        sent = {m.id for m in messages} if len(messages) > LOOK_BACK else set()
        while found and found[0].seq > 1 and sent - {m.source for m in found}:
            begin = self.store.find_first(session, found[0].seq - 1, LOOK_BACK)
            more = self.store.messages(session, begin, found[0].seq - 1)
            if sent.isdisjoint(m.source for m in more):
                break
            found = [*more, *found]
        return found

    def compare(
        self, session: Session, messages: Sequence[AnyMessage]
    ) -> tuple[list[StoredMessage], list[AnyMessage]]:
        """The newest messages that are stored, and those of the channel that are not."""
        recent = self.recent(session, messages)
        return recent, select_unstored(messages, recent)

    def find_edits(
        self,
        session: Session,
        messages: Sequence[AnyMessage],
        mode: OnEdit,
        *,
        answer: bool = False,
        cleared: bool | None = False,
    ) -> tuple[Edit, Sequence[AnyMessage]]:
        """Find what the application changed of earlier messages in the `messages` channel.

        To `answer`, the user may send an earlier message again, in other words. The input `cleared`
        all earlier messages if it removes them; None for a run without an input, where they were
        removed if the channel holds none of them.

        Returns:
            The edit, and the messages that are in view: the very ones that were given if all are.
        """
        if not session.count or mode == "ignore":
            return NO_EDIT, messages
        recent = self.recent(session, messages, first=session.shown)
        if cleared is None:
            ids = {m.id for m in messages}
            cleared = bool(session.shown and all(m.source not in ids for m in recent))
        first, given = 1 if cleared else session.shown, messages
        if first == 1:
            recent = self.store.messages(session)
            messages = align_ids(messages, recent)
        edit, messages = find_edit(messages, recent, first, answer=answer)
        same = [m.id for m in messages] == [m.id for m in given]
        return edit, given if same else messages

    def mark_shown(self, session: Session, messages: Sequence[AnyMessage]) -> Session:
        """The session, which says from which message on the channel shows all that are in view."""
        shown = find_shown(messages, self.recent(session, messages))
        return session.model_copy(update={"shown": shown})

    @property
    def waiting(self) -> int:
        """Messages that the index has no vectors of as yet."""
        return self.index.waiting

    def list_trouble(self) -> list[str]:
        """What could not be read or done in the turn, in words."""
        left, failure = self.waiting, self.index.failure
        other = f"the encoder is another one now: {left} older messages go by words alone as yet"
        failed = f"the encoder failed, and what was said is found by its words alone: {failure}"
        return [
            *([other] if left else ()),
            *(f"damaged: {report}" for report in self.store.new_reports()),
            *(f"the graph's store cannot be read: {why}" for why in self.unread),
            *([failed] if failure else ()),
        ]

    def look_up(self, session: Session, lookup: Lookup) -> Hits:
        """What the index finds for a turn: it searches once, and then hands on what it found."""
        first, last, _ = lookup.before
        read = partial(self.store.messages, session, first, last)
        query = Query(
            lookup.query,
            Days.of(lookup.days),
            TurnContext(lookup.before, read) if first else TurnContext(),
            lookup.from_user,
            lookup.archived,
        )
        return self.indexed(session, self.store.topic_table(session)).search(query)

    def find_return(self, session: Session, text: str) -> str | None:
        """Id of the open topic that a text returns to, if it does."""
        table = self.store.topic_table(session)
        open_ids = {t.id for t in table.open()}
        return self.indexed(session, table).find_return(text, open_ids) if open_ids else None

    def indexed(self, session: Session, table: TopicTable) -> SessionIndex:
        """The index, with what the topics of a table hold."""
        self.index.update(table, TopicReader(self.store, session))
        return self.index


class Workspaces:
    """The workspaces of this process; the longest unused make room for new ones."""

    def __init__(
        self,
        storage: Storage | None,
        index: Callable[[SessionLog], SessionIndex],
        *,
        open_at_once: int = 64,
        keys: EncryptionKeys | None = None,
    ) -> None:
        """Workspaces over a storage; with keys, it is encrypted."""
        self.keys = keys
        self.storage = None if storage is None else protect_storage(storage, keys)
        """None for the store that a graph is compiled with."""
        self._index = index
        self._open: LRUCache[tuple[int, str], Workspace] = LRUCache(open_at_once)
        self._stores: LRUCache[int, Storage] = LRUCache(open_at_once)
        self._unstored: dict[str, Storage] = {}
        self._lock = RLock()

    def open(
        self, session: str, store: BaseStore | None = None, *, renewed: bool = False
    ) -> Workspace:
        """The workspace of a session, made on first use.

        It has nothing in memory of what was purged by now, whichever process did it; `renewed` if
        the caller has looked for that already.

        Raises:
            StorageUnavailableError: There is neither a storage nor the graph's store.
        """
        # One graph may be compiled over several stores; a workspace keeps its own alive.
        key = (0 if self.storage is not None else id(store), session)
        with self._lock:
            workspace = self._open.get(key)
            if workspace is None:
                log = (self._unstored.get(session) or self.choose_storage(store)).open(session)
                stored = SessionStore(log)
                sizes = TranscriptSizes(stored)
                workspace = self._open[key] = Workspace(
                    stored, self._index(log), sizes, self._index(log)
                )
        if not renewed:
            workspace.store.renew()
        return workspace

    def delete(self, session: str, store: BaseStore | None = None) -> None:
        """Remove a session from its storage for good; see `Storage.delete`, and `open` for more."""
        self.open(session, store).store.log.delete()
        with self._lock:
            self._open.pop((0 if self.storage is not None else id(store), session), None)

    @contextmanager
    def keep_in_memory(self, session: str) -> Iterator[None]:
        """Store nothing of a new session; what is in memory of it goes when the context ends."""
        with self._lock:
            self._unstored[session] = StoreStorage(InMemoryStore())
        try:
            yield
        finally:
            with self._lock:
                del self._unstored[session]
                for key in [key for key in self._open if key[1] == session]:
                    del self._open[key]

    def choose_storage(self, store: BaseStore | None) -> Storage:
        """The storage, or that in the graph's store; raises as `open` does."""
        if self.storage is not None:
            return self.storage
        if store is None:
            raise StorageUnavailableError(
                "no storage: give build_session_graph(storage=...) or compile the graph with store="
            )
        with self._lock:
            made = protect_storage(StoreStorage(find_inner(store)), self.keys)
            return self._stores.setdefault(id(store), made)


def enter_all(index: SessionIndex, store: SessionStore, session: Session) -> str:
    """Bring an index of all messages up to date; returns the id of those in no topic."""
    tail = Topic(id="tail", name="", count=session.count - session.tail + 1)
    row = {"topic": tail.id, "first": session.tail, "last": session.count}
    ranges = TopicRanges.fold([row] if tail.count else (), store.ranges(session))
    table = TopicTable({**store.topic_table(session).topics, tail.id: tail})
    index.update(table, TopicReader(store, session, ranges))
    return tail.id
